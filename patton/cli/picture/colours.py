"""Colours, by what they mean."""

from __future__ import annotations

from patton.cli.picture.shapes import Hatch

QUIET = "#64748b"
FAINT = "#cbd5e1"
GROUND = "#ffffff"

SHARED = "#1e293b"
CACHED = Hatch("#eef2f7", "#a9b6c8")
FREE_SLOT = "#e6ebf1"
TINT = 0.16  # of an owner's colour, for its free places
OWNED_BORDER = "#334155"
UNOWNED_BORDER = "#94a3b8"

# Twelve hues in two tones, neighbours far apart; request number 25 begins anew.
REQUESTS = (
    *("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#12b5cb"),
    *("#c2a800", "#f032e6", "#7cb518", "#9a6324", "#0f766e", "#fb7185"),
    *("#86a8ff", "#f9b27c", "#8fd694", "#c98be0", "#7fdbe6", "#e0cd4f"),
    *("#b91c1c", "#f7a1d8", "#5b7f0f", "#c8a27a", "#4cc3a5", "#5a6bff"),
)


def of_request(number: int) -> str:
    """The colour of the request with this number among those that run."""
    return REQUESTS[number % len(REQUESTS)]


def pale(colour: str, part: float) -> str:
    """A colour thinned with white to a part of itself."""
    channels = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    mixed = (round(255 - part * (255 - channel)) for channel in channels)
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
