"""Proofs about the shipped code, one file for each theorem.

The folder is for theorems that a solver decides by calling the address functions
of ``patton`` themselves, never a second copy of their formulas.  It is used from a
checkout and is not part of the wheel.  This version has no proofs yet; they come
with later versions.
"""
