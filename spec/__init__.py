"""What must hold: the specification that the runtime is checked against.

`SPEC.md` has the promises as numbered clauses, `python -m spec` the table of where each
is stated formally, proved, tested and attacked. The state (`state`), what may happen
(`machine`), what holds throughout (`invariants`) and what each transition does, leaves
alone and may not be refused (`effects`, `claims`, `enabled`) are written once over a
small language of formulas (`logic`), so that Python runs what a solver proves.

The folder uses the standard library and attrs alone, so that it shares no code, and
hence no bug, with `patton`. It is used from a checkout and is not part of the wheel.
"""
