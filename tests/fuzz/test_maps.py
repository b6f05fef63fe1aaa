"""The clauses of the address map, place by place on small layouts of every kind.

MAP-INDEX, MAP-INVERSE, MAP-ONTO, MAP-INSIDE, MAP-DISJOINT, MAP-LOOKUP, MAP-ACCEPT,
MAP-PAIR, MAP-SHIFT, MAP-ALIGN, MAP-COLUMNS, MAP-RUN and MAP-COMMIT; that each of the
checks can fail is shown by the seeded bugs (`test_bugs`).
"""

from __future__ import annotations

import pytest

from fuzz.maps import CHECKS, broken_by
from spec.clauses import SPEC, clauses


def test_every_clause_of_the_map_is_checked() -> None:
    known = clauses(SPEC.read_text(encoding="utf-8"))

    assert {one.id for one in known if one.id.startswith("MAP-")} == {*CHECKS}


@pytest.mark.parametrize("seed", range(40))
def test_small_layouts_break_no_clause(seed: int) -> None:
    assert [] == broken_by(seed)
