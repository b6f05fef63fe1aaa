"""The Commit Zone's slots by themselves."""

from __future__ import annotations

from patton.commit_zone import CommitZone


def test_free_slots_are_counted_over_all_stripes() -> None:
    zone = CommitZone.of(3, 4)
    taken = [zone.take(stripe) for stripe in (0, 2, 2)]

    assert 9 == zone.free_count()
    assert [0, 2, 5] == taken
