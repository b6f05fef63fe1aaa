"""Long random runs of the runtime against its specification.

The folder is for the stateful machine, campaigns, fault injection, seeded bugs and
the regression corpus that the campaigns leave behind.  It is used from a checkout
and is not part of the wheel.  This version has no campaigns yet; they come with
later versions.
"""
