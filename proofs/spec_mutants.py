"""`python -m proofs.spec_mutants` asks whether a wrong specification is rejected.

It changes each function of `spec/machine.py`, and each word of `spec/state.py` that
they use, in one place, in all the ways below, and asks whether a theorem fails. Among a
few requests and blocks a solver decides that, so that a rejection has a counterexample.
What no such scope rejects is asked without bounds; what is proved even so is accepted.

Ends with status 1 if a mutant is accepted, rejected without a counterexample, or of
such a kind that it makes no formula and so says nothing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from types import FunctionType
from typing import Literal

import attrs
import z3

from proofs.check import is_proved
from proofs.jobs import in_order
from proofs.progress import watched
from proofs.solver import ask
from proofs.spaces import AllGeometries
from proofs.swaps import code_of, replaced, tree_of
from proofs.theorem import Theorem, readings
from proofs.theorems import commits, events, possible, words
from spec import machine, state

Fate = Literal["rejected", "rejected, not confirmed", "no formula", "ACCEPTED"]
Change = Callable[[ast.expr], ast.expr]

_OTHER_WORD = {"and_": "or_", "or_": "and_", "add": "remove", "remove": "add"}
_OTHER_NAME = {"first": "last", "last": "first", "verified": "last"}
_OTHER_ORDER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
}
_RLIMIT = 4_000_000  # four times what the hardest theorem about the machine takes


@attrs.frozen
class Mutant:
    """One change of one function of the machine."""

    function: str
    says: str
    tree: ast.FunctionDef = attrs.field(repr=False)


@cache
def functions() -> Mapping[str, FunctionType]:
    """The machine's transitions, what they are made of, and the words they use."""
    found = {**vars(state), **vars(machine)}
    return {
        name: function
        for name, function in found.items()
        if isinstance(function, FunctionType)
        and function.__module__ in {"spec.machine", "spec.state"}
        and next(iter(inspect.signature(function).parameters), "") in {"lg", "_"}
    }


def all_mutants() -> Iterator[Mutant]:
    """Every mutant of every function, each with words of its own."""
    said: Counter[str] = Counter()
    for mutant in _mutants():
        said[mutant.says] += 1
        number = f" ({said[mutant.says]})" if said[mutant.says] > 1 else ""
        yield attrs.evolve(mutant, says=mutant.says + number)


def _mutants() -> Iterator[Mutant]:
    for function in functions().values():
        tree = tree_of(function)
        names = {argument.arg for argument in tree.args.args}
        body = [node for part in tree.body for node in ast.walk(part)]
        for number, node in enumerate(body):
            for change in _changes(node, names):
                mutated = copy.deepcopy(tree)
                place = [n for part in mutated.body for n in ast.walk(part)][number]
                assert isinstance(place, ast.expr)
                after = change(place)
                says = f"{function.__name__}: {_in_words(place, after)}"
                _Put(place, after).visit(mutated)
                yield Mutant(function.__name__, says, mutated)


def _in_words(before: ast.expr, after: ast.expr) -> str:
    """What is changed; of a dict only what is left out."""
    if isinstance(before, ast.Dict) and isinstance(after, ast.Dict):
        kept = {ast.dump(value) for value in after.values}
        parts = zip(before.keys, before.values, strict=True)
        gone = next((k, v) for k, v in parts if ast.dump(v) not in kept)
        return f"without {' '.join(ast.unparse(part) for part in gone if part)}"
    return f"{ast.unparse(before)} -> {ast.unparse(after)}"


def _changes(node: ast.AST, names: AbstractSet[str]) -> Iterator[Change]:
    """Functions from an expression of a copied tree to what is put in its place.

    names: of the function's arguments, which may be mistaken for one another.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _call_changes(node, node.func.attr)
    elif isinstance(node, ast.Dict):
        yield from (_without("values", "keys", i) for i in range(len(node.values)))
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        if all(isinstance(part, ast.Constant) for part in node.elts):
            yield from (_without("elts", "", i) for i in range(len(node.elts)))
    elif isinstance(node, ast.BinOp):
        yield lambda place: _expression(place, "left")
        yield lambda place: _expression(place, "right")
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER_ORDER:
        yield _other_order
        yield lambda _: ast.Constant(value=True)
    elif isinstance(node, ast.Name) and {node.id, _OTHER_NAME.get(node.id)} <= names:
        yield lambda place: _parsed(_OTHER_NAME[_name(place)])
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield lambda place: _parsed(str(ast.unparse(place) == "False"))
    elif isinstance(node, ast.Constant) and node.value == 0:
        yield lambda _: _parsed("lg.tokens")


def _call_changes(node: ast.Call, word: str) -> Iterator[Change]:
    if word in _OTHER_WORD and (len(node.args) > 1 or word in {"add", "remove"}):
        yield lambda place: _renamed(place, _OTHER_WORD[word])
    if word in {"and_", "or_"}:
        yield from (_without("args", "", i) for i in range(len(node.args)))
    if word in {"add", "remove", "where", "union", "set"}:
        yield lambda place: _expression(_expression(place, "func"), "value")
    if word == "not_":
        yield lambda place: _part(place, "args", 0)
    if word in {"implies", "if_"}:
        yield from (_only(i) for i in range(1, len(node.args)))
    if word in {"any", "all", "forall", "eq"}:
        yield lambda _: ast.Constant(value=True)
        yield lambda _: ast.Constant(value=False)


def _without(parts: str, twins: str, number: int) -> Change:
    def change(place: ast.expr) -> ast.expr:
        new = copy.deepcopy(place)
        for name in filter(None, (parts, twins)):
            del getattr(new, name)[number]
        return new

    return change


def _only(number: int) -> Change:
    return lambda place: _part(place, "args", number)


def _other_order(place: ast.expr) -> ast.expr:
    new = copy.deepcopy(place)
    assert isinstance(new, ast.Compare)
    new.ops[0] = _OTHER_ORDER[type(new.ops[0])]()
    return new


def _renamed(place: ast.expr, word: str) -> ast.expr:
    new = copy.deepcopy(place)
    assert isinstance(new, ast.Call)
    assert isinstance(new.func, ast.Attribute)
    new.func.attr = word
    return new


def _expression(place: ast.expr, part: str) -> ast.expr:
    found = getattr(place, part)
    assert isinstance(found, ast.expr)
    return found


def _part(place: ast.expr, parts: str, number: int) -> ast.expr:
    found = getattr(place, parts)[number]
    assert isinstance(found, ast.expr)
    return found


def _name(place: ast.expr) -> str:
    assert isinstance(place, ast.Name)
    return place.id


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Put(ast.NodeTransformer):
    def __init__(self, place: ast.AST, new: ast.expr) -> None:
        self._place = place
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._place else self.generic_visit(node)


def theorems_about(function: str) -> list[Theorem]:
    """What speaks of a function: its events, and all that is about every event."""
    about = [
        theorem
        for name, theorem in zip(machine.TRANSITIONS, _by_event(), strict=True)
        if _is_for_all(function) or function in _used_by(machine.TRANSITIONS[name])
    ]
    return [*about, *words.THEOREMS, *possible.THEOREMS, *commits.THEOREMS]


def _is_for_all(function: str) -> bool:
    """Whether it has a part in every event, or in what is claimed of it."""
    return function == "move_of" or function in vars(state)


@cache
def _by_event() -> list[Theorem]:
    found = {title: name for name, (title, _, _) in events.PLANTED.items()}
    by_name = {found[t.name]: t for t in events.THEOREMS if t.name in found}
    return [by_name[name] for name in machine.TRANSITIONS]


def _used_by(function: FunctionType) -> set[str]:
    """The names of a function and of all functions of its module that it calls."""
    known = functions()
    names, ahead = {function.__name__}, [function]
    while ahead:
        for name in ahead.pop().__code__.co_names:
            if name in known and name not in names:
                names.add(name)
                ahead.append(known[name])
    return names


def fate(mutant: Mutant) -> Fate:
    """What the theorems say of a mutant."""
    function = functions()[mutant.function]
    theorems = theorems_about(mutant.function)
    with replaced(function, code_of(function, mutant.tree)):
        try:
            if any(_is_refuted(theorem) for theorem in theorems):
                return "rejected"
        except (AttributeError, TypeError, z3.Z3Exception):
            return "no formula"
        proved = all(is_proved(theorem, rlimit=_RLIMIT) for theorem in theorems)
        return "ACCEPTED" if proved else "rejected, not confirmed"


def _is_refuted(theorem: Theorem) -> bool:
    """Whether a few requests and blocks break the theorem."""
    assert theorem.few is not None
    few = attrs.evolve(theorem, given=theorem.few)
    return any(
        ask(goal.question).status == "refuted"
        for reading in readings(few, AllGeometries)
        for goal in reading.goals()
    )


@cache
def sampled(count: int) -> list[Mutant]:
    """So many mutants, evenly over all functions and kinds of changes; all if 0."""
    mutants = list(all_mutants())
    if not 0 < count < len(mutants):
        return mutants
    return [mutants[i * len(mutants) // count] for i in range(count)]


def _fate_of(number: int, count: int) -> Fate:
    # Trees do not travel between processes; their numbers do.
    return fate(sampled(count)[number])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.spec_mutants")
    parser.add_argument("--count", type=int, default=0, help="how many (default all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    mutants = sampled(options.count)
    begin = time.perf_counter()
    fates: dict[str, Fate] = {}
    told_of = partial(_fate_of, count=options.count)
    found = in_order(told_of, range(len(mutants)), options.jobs)
    come = watched(found, len(mutants), "mutants")
    for mutant, result in zip(mutants, come, strict=True):
        fates[mutant.says] = result
    for says, result in fates.items():
        if result != "rejected":
            sys.stdout.write(f"{result}: {says}\n")
    counts = Counter(fates.values())
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    seconds = time.perf_counter() - begin
    sys.stdout.write(f"{len(fates)} mutants: {told} ({seconds:.0f} s)\n")
    return 0 if counts["rejected"] == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
