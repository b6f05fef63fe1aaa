from __future__ import annotations

import pytest

from patton import addresses, layout
from proofs.layouts import llama3
from proofs.swaps import SwapError, shipped, swapped


def lane() -> int:
    found = layout.Layout.address_of(llama3(), "key", addresses.Element(0, 0, 0, 0, 5))
    return int(found.lane)


def test_a_swap_reaches_whoever_imported_the_function() -> None:
    """The layout imported the function by name long before."""
    with swapped("addresses.key_address", "element % m.lanes", "element % m.lanes + 1"):
        assert 6 == lane()
    assert 5 == lane()


def test_a_swap_is_taken_back_after_an_error() -> None:
    """Nothing else runs changed code."""
    swap = swapped("addresses.key_address", "element % m.lanes", "element // 0")
    with pytest.raises(ZeroDivisionError), swap:
        lane()

    assert 5 == lane()


@pytest.mark.parametrize("old", ["element % m.banks", "m.channels_per_head", "("])
def test_a_swap_that_does_not_fit_is_an_error(old: str) -> None:
    """Text that is not there, that is there twice, or that is no expression."""
    with (
        pytest.raises((SwapError, SyntaxError)),
        swapped("addresses.key_address", old, "0"),
    ):
        lane()


@pytest.mark.parametrize(
    "name", ["addresses.key_address", "layout.Layout.of", "layout.Layout.ideal_tokens"]
)
def test_functions_methods_and_properties_are_found(name: str) -> None:
    """By dotted name."""
    assert name.rpartition(".")[2] == shipped(name).__name__
