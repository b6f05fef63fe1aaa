"""What must hold: the specification that the runtime is checked against.

The folder is for numbered clauses in plain words, an abstract machine and its
invariants, written with the standard library and attrs alone so that they share
no code, and hence no bug, with ``patton``.  It is used from a checkout and is not
part of the wheel.  This version has no clauses yet; they come with later versions.
"""
