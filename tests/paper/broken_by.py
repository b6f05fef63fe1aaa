"""Each test of the paper, and a change of the code that breaks it.

The changes are in `changes`, or, where they are faults of the runtime, in `fuzz.bugs`.
"""

from __future__ import annotations

BROKEN_BY: dict[str, tuple[str, ...]] = {
    "tokens of a Key in the next bank": (
        "test_reductions_run_along_columns_and_outputs_over_banks",
        "test_a_key_block_fills_the_banks",
        "test_other_devices_and_models_have_granules_of_other_shapes",
        "test_a_block_has_one_key_and_one_value_granule",
    ),
    "elements of a Key leave a column free": (
        "test_keys_take_channels_first_then_columns_then_rows",
        "test_the_granule_says_where_writes_go_and_what_is_multiplied",
        "test_each_token_of_a_key_block_is_written_to_its_bank",
        "test_blocks_of_a_pair_are_dealt_to_channels_then_to_columns",
    ),
    "Keys on one channel": (
        "test_channels_per_head",
        "test_granules_are_fixed_and_aligned",
        "test_keys_values_and_slots_are_equal_in_size",
        "test_sizes_of_key_granules",
    ),
    "tokens of a Value in other lanes": (
        "test_a_value_block_is_one_burst_of_each_output",
        "test_a_row_gives_16_outputs_and_a_burst_adds_16_tokens",
        "test_a_partial_block_has_a_slot_beside_its_reserved_place",
    ),
    "a column free between Values": (
        "test_the_next_value_block_lies_in_the_next_columns",
        "test_an_order_2_granule_is_a_group_of_neighbours",
        "test_a_pair_keeps_a_request_together_and_leaves_the_rest",
    ),
    "parts of a Value in one row": (
        "test_a_value_block_has_eight_parallel_parts",
        "test_shapes_of_granules",
        "test_row_sets_are_divided_into_order_2_granules",
        "test_a_value_row_set",
        "test_widths_of_value_granules",
        "test_the_last_token_commits_the_block",
    ),
    "parts of a slot in rows of their own": (
        "test_while_it_fills_a_block_lies_in_one_row",
        "test_size_of_a_slot",
        "test_partial_blocks_are_summed_from_their_slots",
    ),
    "slots leave a column free": (
        "test_bursts_of_a_slot_are_different_outputs",
        "test_columns_of_a_slot",
    ),
    "a slot less in a row": (
        "test_the_head_dimension_decides_how_much_of_a_row_a_key_takes",
        "test_bitmaps_say_which_granules_are_free",
        "test_the_partial_block_of_each_request_waits_in_a_slot",
        "test_a_row_of_the_commit_zone_holds_slots_of_many_requests",
        "test_rows_of_the_commit_zone_are_filled_one_by_one",
        "test_the_commit_zone_saves_row_activations",
    ),
    "a Key less in a row": (
        "test_what_a_request_does_not_fill_is_left_to_others",
        "test_within_a_group_all_channels_work_and_few_rows_are_opened",
        "test_requests_share_row_sets_and_packed_allocation_fills_the_fullest",
        "test_the_query_is_repeated_at_the_columns_of_the_keys",
        "test_pairs_of_a_row_set_are_allocated_each_by_itself",
    ),
    "any block is accepted": ("test_a_block_fills_all_banks_and_whole_bursts",),
    "pairs of twice as many blocks": (
        "test_an_order_2_granule_has_16_blocks",
        "test_a_run_goes_on_over_pairs_of_one_request_only",
        "test_a_request_knows_its_blocks_and_its_pairs_with_room",
    ),
    "channels of more banks": ("test_contemporary_devices_take_blocks_of_32_tokens",),
    "score_stream: half of its set-ups": (
        "test_a_key_block_is_a_reduction_of_its_own",
        "test_a_block_of_keys_is_set_up_multiplied_and_read",
        "test_every_block_keeps_its_own_boundary",
    ),
    "value_stream: half of its set-ups": (
        "test_full_blocks_of_a_request_are_summed_in_one_run",
        "test_neighbours_extend_the_reduction_row_by_row",
        "test_the_slot_is_read_until_its_commit_is_published",
    ),
    "score_stream: products of half the banks": (
        "test_every_product_uses_all_banks_and_whole_bursts",
    ),
    "score_stream: loads one column on": (
        "test_the_query_is_loaded_only_where_keys_are",
    ),
    "value_stream: loads one column on": (
        "test_scores_are_loaded_at_the_columns_of_their_blocks",
    ),
    "value_writes: half of the rows": (
        "test_writing_one_token_in_place_opens_every_row",
        "test_neither_layout_is_best_for_both",
        "test_in_place_every_token_opens_every_row",
    ),
    "value_writes: half of the parts": ("test_keys_and_values_run_out_together",),
    "an emptied pair is not free again": (
        "test_the_last_block_to_be_evicted_frees_the_pair",
    ),
    "a place is lost when its block goes": (
        "test_the_least_occupied_channel_is_taken_and_of_equals_the_lowest_place",
        "test_ending_with_a_partial_block_gives_up_slot_and_place",
    ),
    "a place is given twice": (
        "test_scores_reduce_over_elements_and_outputs_over_tokens",
        "test_blocks_of_requests_do_not_interleave",
        "test_a_unit_for_each_block_and_a_unit_of_several",
        "test_a_full_block_goes_over_channels_then_along_columns",
        "test_placements_are_found_by_block_id",
    ),
    "pairs stay owned after the end": (
        "test_allocation_takes_and_gives_back_granules_and_moves_none",
        "test_sharing_counts_a_reference_and_caching_none",
    ),
    "a share is not counted": (
        "test_prefill_binds_what_is_new_and_writes_what_is_scheduled",
        "test_a_partial_block_is_private_and_writable",
    ),
    "a full block is dropped with its last reference": (
        "test_cached_blocks_stay_until_memory_runs_out",
        "test_a_block_keeps_its_place_and_its_commands",
    ),
    "sharing does not seal": ("test_a_full_block_is_not_written_any_more",),
    "the slot of a committed block leaks": (
        "test_publication_follows_the_copy_and_frees_the_slot",
    ),
    "the highest slot is taken": (
        "test_an_entry_has_the_visible_place_and_the_reserved_one",
    ),
    "the Commit Zone is passed by": (
        "test_layout_changes_when_the_block_is_full",
        "test_one_commit_in_16_decode_steps",
        "test_decode_takes_memory_only_for_a_new_block",
    ),
    "a write begins one column late": (
        "test_metadata_says_which_block_and_the_offset_where_in_it",
    ),
    "rows of half the size": (
        "test_a_key_vector_is_an_eighth_of_a_row",
        "test_the_representative_configuration",
    ),
    "writes are forgotten": (
        "test_heads_have_groups_of_channels_that_differ_in_data_only",
    ),
    "the simulator is a cycle late": (
        "test_a_row_in_eight_pieces_takes_twice_as_long",
    ),
}
