"""Provenance: every generated stream, executed over tags and proved term by term.

A `StreamValidator` follows a run. In place of a number every lane of memory holds a tag
that says of which token, as written when, it is which element of Key or Value. Whatever
a stream returns is then a list of products of tags and operands, and is compared with
what the step's placements say: each term, each once, none foreign, in the stated order.
What streams write is compared lane by lane with where the address map puts it. Stale
data of other requests stay in the tags over the whole run, as they do in a device.

One channel group in one plane stands for all heads and layers. A stream names channels
and rows relative to them; the validator refuses any that leaves the group's channels or
the plane's rows (`patton.device.protocol`) or that speaks of another frame than the
layout's. So two heads or layers never touch the same cell, each is told the very same
commands with operands of the same names, and tags name no head and no layer: what holds
for one holds for all. Executing every stream for every layer, and sending a head its
own numbers, is the executor's part and is tested with data.

What is due never comes from a stream or its generator: `contents` and `reads` work it
out from placements and the address map. Not covered: time, energy, numbers.
"""

from __future__ import annotations

from patton.device.provenance.contents import Identify
from patton.device.provenance.tags import Fault
from patton.device.provenance.validator import StreamValidator

__all__ = ["Fault", "Identify", "StreamValidator"]
