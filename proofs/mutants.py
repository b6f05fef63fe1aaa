"""`python -m proofs.mutants` asks whether wrong address functions are rejected.

It changes each address function in one place, in all the ways below, and asks whether a
theorem fails. A proof can also fail because a solver gives up, so each rejection is
confirmed by a counterexample on plain integers. Ends with status 1 if a mutant is
accepted, or rejected without a counterexample.
"""

from __future__ import annotations

import argparse
import ast
import copy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Literal

import attrs

from patton.addresses import AddressMap
from proofs import finite
from proofs.check import is_proved
from proofs.jobs import in_order
from proofs.layouts import small_layouts
from proofs.positions import KINDS
from proofs.progress import watched
from proofs.swaps import code_of, replaced, shipped, tree_of
from proofs.theorem import Theorem
from proofs.theorems import THEOREMS

FUNCTIONS = (
    *(f"{kind.word}_{way}" for kind in KINDS for way in ("address", "element")),
    *("_plane", "_group", "_layer", "_head", "_stripe_channel", "_stripe"),
)
Fate = Literal["rejected", "rejected, not confirmed", "ACCEPTED"]

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}
_FIELDS = [field.name for field in attrs.fields(AddressMap)]
_COORDINATES = ("layer", "head", "granule", "slot", "token", "element", "index", "part")


@attrs.frozen
class Mutant:
    """One change of one shipped function."""

    function: str
    says: str
    tree: ast.FunctionDef = attrs.field(repr=False)


def all_mutants() -> Iterator[Mutant]:
    """Every mutant of every address function, in the order of the text."""
    for name in FUNCTIONS:
        tree = tree_of(shipped(f"addresses.{name}"))
        names = [argument.arg for argument in tree.args.args]
        for i, node in enumerate(ast.walk(tree)):
            if isinstance(node, ast.expr):
                for change in _changes(node, names):
                    mutated = copy.deepcopy(tree)
                    place = list(ast.walk(mutated))[i]
                    before = ast.unparse(place)
                    after = change(place)
                    _Put(place, after).visit(mutated)  # in place
                    says = f"{before} -> {ast.unparse(after)}"
                    yield Mutant(name, f"{name}, line {node.lineno}: {says}", mutated)


def _changes(node: ast.expr, names: Sequence[str]) -> Iterator[Callable[..., ast.expr]]:
    """Functions from a node of a copied tree to what is put in its place."""
    if isinstance(node, ast.BinOp):
        yield _other_operator
        yield lambda place: place.left
        if isinstance(node.op, ast.Add | ast.Sub):
            yield lambda place: place.right
    if isinstance(node, ast.Attribute) and node.attr in _FIELDS:
        for field in _FIELDS:
            if field != node.attr:
                yield lambda place, other=field: _attribute(place, other)
    if isinstance(node, ast.Name) and _is_coordinate(node):
        for other in names:
            if other in _COORDINATES and other != node.id:
                yield lambda _, name=other: ast.Name(name, ast.Load())


def _is_coordinate(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load) and node.id in _COORDINATES


def _other_operator(place: ast.BinOp) -> ast.expr:
    return ast.BinOp(place.left, _OPERATORS[type(place.op)](), place.right)


def _attribute(place: ast.Attribute, field: str) -> ast.expr:
    return ast.Attribute(place.value, field, ast.Load())


class _Put(ast.NodeTransformer):
    def __init__(self, place: ast.AST, new: ast.expr) -> None:
        self._place = place
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._place else self.generic_visit(node)


def sample(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """So many mutants, evenly over all functions and kinds of changes."""
    if count >= len(mutants):
        return list(mutants)
    return [mutants[i * len(mutants) // count] for i in range(count)]


def fate(mutant: Mutant, theorems: Sequence[Theorem] = ()) -> Fate:
    """What these theorems, or all about addresses, say of a mutant."""
    theorems = theorems or _theorems(mutant)
    function = shipped(f"addresses.{mutant.function}")
    small_layouts()  # made once, and never by a mutant
    with replaced(function, code_of(function, mutant.tree)):
        failing = next((t for t in theorems if not is_proved(t)), None)
        if failing is None:
            return "ACCEPTED"
        for theorem in (failing, *theorems):
            if finite.search(theorem) is not None:
                return "rejected"
        return "rejected, not confirmed"


def _theorems(mutant: Mutant) -> list[Theorem]:
    """Theorems without branches; those that name the mutant's kind come first."""
    kind = mutant.function.split("_")[0]
    theorems = [t for t in THEOREMS if t.few is None and not t.branches]
    return sorted(theorems, key=lambda t: not (kind and t.name.startswith(kind)))


@cache
def _sampled(count: int) -> list[Mutant]:
    return sample(list(all_mutants()), count)


def _fate_of(number: int, count: int) -> Fate:
    # Trees do not travel between processes; their numbers do.
    return fate(_sampled(count)[number])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.mutants")
    parser.add_argument("--count", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    mutants = _sampled(options.count)
    begin = time.perf_counter()
    fates: dict[Fate, int] = {}
    told_of = partial(_fate_of, count=options.count)
    found = in_order(told_of, range(len(mutants)), options.jobs)
    come = watched(found, len(mutants), "mutants")
    for mutant, result in zip(mutants, come, strict=True):
        fates[result] = fates.get(result, 0) + 1
        if result != "rejected":
            sys.stdout.write(f"{result}: {mutant.says}\n")
    seconds = time.perf_counter() - begin
    told = ", ".join(f"{count} {name}" for name, count in fates.items())
    sys.stdout.write(f"{len(mutants)} mutants: {told} ({seconds:.0f} s)\n")
    return 0 if fates.get("rejected") == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
