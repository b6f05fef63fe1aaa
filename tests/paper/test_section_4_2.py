"""What is allocated, for which devices and on which channels (Paper 4.2)."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.addresses import Element
from patton.commands import Op
from patton.config import DEVICE_PRESETS, MODEL_PRESETS, device_preset, model_preset
from patton.errors import LayoutError
from patton.layout import Kind, Layout
from tests.core.llama import place
from tests.paper.setting import (
    AIM,
    BANKS,
    BOTH,
    LLAMA,
    TOKENS,
    at,
    attend,
    commands,
    grow,
    lies,
    only,
    prefill,
    served,
    streams,
    values,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


@both
def test_granules_are_fixed_and_aligned(layout: Layout) -> None:
    """Granules begin at whole multiples of their size and tile their rows.

    Reference: section 4.2, sentence 1.1.
    """
    for granule in (0, 1, 17, 63, 64, 100):
        assert 0 == at(layout, "key", granule).burst % layout.key_width
    for kind, rows in (("key", layout.key_rows), ("value", layout.value_rows)):
        shape: Kind = "key" if kind == "key" else "value"
        first = lies(layout, shape, range(layout.granules), [0], [0])
        assert layout.granules == len({*first})
        assert rows >= len(values(first, "row"))


def test_bitmaps_say_which_granules_are_free() -> None:
    """Of a pair a bit for each place, of the Commit Zone a bit for each slot.

    Reference: section 4.2, sentence 1.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [4, 5, 6], 2 * TOKENS + 1)
    runtime.release("a", 4)
    runtime.evict(4)
    granules = [place(runtime, block).granule for block in (5, 6)]
    slot = place(runtime, 6).slot
    pair = LLAMA.pair_of(granules[0])
    taken = sum(1 << granule - 16 * pair for granule in granules)

    assert (1 << 16) - 1 - taken == runtime.placements.pool.free_places[pair]
    assert slot is not None
    assert (1 << 32) - 1 - (1 << slot) == runtime.placements.zone.free[0]


def test_allocation_takes_and_gives_back_granules_and_moves_none() -> None:
    """Only the pair's owner and the block's own place change.

    Reference: section 4.2, sentence 1.3.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(5), 5 * TOKENS)
    before = [place(runtime, block) for block in range(5)]
    owner = runtime.placements.pool.owner
    runtime.bind("b", 9)
    pair = LLAMA.pair_of(place(runtime, 9).granule)
    assert "b" == owner[pair]
    assert before == [place(runtime, block) for block in range(5)]
    runtime.finish("b")

    assert (None, None) == (owner[pair], runtime.placement(9))
    assert before == [place(runtime, block) for block in range(5)]


def test_the_representative_configuration() -> None:
    """32 channels of 16 banks, rows of 2 KB, bursts of 32 bytes, blocks of 16 tokens.

    Reference: section 4.2, sentence 2.1.
    """
    assert (32, 16, 2048, 32) == (
        AIM.channels,
        AIM.banks,
        AIM.row_bytes,
        AIM.burst_bytes,
    )
    assert (16, 128, 8) == (LLAMA.block_tokens, LLAMA.model.head_dim, LLAMA.key_bursts)


@pytest.mark.parametrize("device", [name for name in DEVICE_PRESETS if name != "tiny"])
@pytest.mark.parametrize("model", [name for name in MODEL_PRESETS if name != "tiny"])
def test_other_devices_and_models_have_granules_of_other_shapes(
    device: str, model: str
) -> None:
    """Whatever the organisation, a block lies in its granules and is found there.

    Reference: section 4.2, sentence 2.2.
    """
    found = device_preset(device)
    tokens = max(found.banks, found.lanes)
    layout = Layout.of(found, model_preset(model), block_tokens=tokens)
    shape = layout.model
    rng = np.random.default_rng(3)
    bounds = (shape.layers, shape.kv_heads, layout.granules, tokens, shape.head_dim)

    for _ in range(40):
        element = Element(*(int(rng.integers(bound)) for bound in bounds))
        for kind in ("key", "value"):
            address = layout.address_of(kind, element)
            assert (kind, element) == layout.element_at(address)
    assert tokens * shape.head_dim <= layout.key_width * found.banks * found.lanes


@pytest.mark.parametrize("tokens", [1, 8, 24, 40])
def test_a_block_fills_all_banks_and_whole_bursts(tokens: int) -> None:
    """The paper recommends no fewer tokens than banks and lanes; here, a multiple.

    A block of 24 tokens would leave half of its second burst empty, for good.

    Ours: MAP-ACCEPT.
    Reference: section 4.2, sentence 2.3.
    """
    with pytest.raises(LayoutError, match="a multiple of 16") as refusal:
        Layout.of(AIM, LLAMA.model, block_tokens=tokens)

    assert {"block_tokens"} == {refusal.value.parameter}
    nearest = refusal.value.fits
    assert nearest is not None
    assert nearest == Layout.of(AIM, LLAMA.model, block_tokens=nearest).block_tokens


def test_contemporary_devices_take_blocks_of_32_tokens() -> None:
    """Banks and lanes number 32 at most. The paper says below 32, which DDR5 is not.

    Ours: MAP-ACCEPT.
    Reference: section 4.2, sentence 2.4.
    """
    devices = [device_preset(name) for name in DEVICE_PRESETS]

    assert 32 == max(max(device.banks, device.lanes) for device in devices)
    for device in devices:
        model = model_preset("tiny" if device.name == "tiny" else "llama3-8b")
        assert 32 == Layout.of(device, model, block_tokens=32).block_tokens


def test_heads_have_groups_of_channels_that_differ_in_data_only() -> None:
    """Eight heads on 32 channels have the commands of one head on its four.

    Reference: section 4.2, sentences 3.1, 3.2.
    """
    alone = Layout.of(
        attrs.evolve(AIM, channels=4),
        attrs.evolve(LLAMA.model, kv_heads=1, query_heads=4),
    )
    found = []
    for layout in (LLAMA, alone):
        runtime = served(layout)
        plan = grow(runtime, "a", range(3), 2 * TOKENS + 5)
        step = streams(plan), attend(runtime, "a")
        found.append([commands(s) for part in step for s in part.present()])
    assert found[0] == found[1]
    assert found[0]

    for head in range(8):
        for kind in ("key", "value"):
            own = LLAMA.address_of(kind, Element(0, head, 7, 3, 90))
            first = LLAMA.address_of(kind, Element(0, 0, 7, 3, 90))
            assert own == first._replace(channel=first.channel + 4 * head)


def test_within_a_group_all_channels_work_and_few_rows_are_opened() -> None:
    """32 blocks of Keys: one row, opened in all four channels at once.

    Reference: section 4.2, sentence 3.3.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(32), 32 * TOKENS)
    found = attend(runtime, "a")
    (opened,) = only(commands(found.qk), Op.ACT)

    assert (0, 4, BANKS) == (opened.channel, opened.channels, opened.banks)
    assert 2 == len(only(commands(found.sv), Op.ACT))


def test_the_least_occupied_channel_is_taken_and_of_equals_the_lowest_place() -> None:
    """Where the paper takes equals in turn, here the lowest is taken: the same states.

    Ours: LIFE-PLACE.
    Reference: section 4.2, sentence 3.4.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(10), 10 * TOKENS)
    for block in (1, 5, 6):
        runtime.release("a", block)
        runtime.evict(block)
    taken = []
    for block in range(20, 24):
        runtime.bind("a", block)
        taken.append(place(runtime, block).granule)

    # Channels 0 to 3 hold 3, 1, 1 and 2 blocks: places 1 and 6 make them 3, 2, 2, 2,
    # and of 5, 10 and 11, which are as good as each other, the lowest comes first.
    assert [1, 6, 5, 10] == taken
