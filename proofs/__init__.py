"""Proofs about the shipped code: `python -m proofs` runs them all.

A theorem is a statement about functions of ``patton`` themselves, never about a second
copy of their formulas. `numbers` are what the functions are called with, `lemmas` and
`allparams` make all geometries decidable at once, `theorems` has a file for each
statement, and `check` asks of each that it is proved, that it speaks about something
(a witness), and that it notices bugs (planted ones). `sweep` proves the same on many
concrete layouts, `mutants` counts how many changed address functions are rejected.

The folder is used from a checkout and is not part of the wheel.
"""
