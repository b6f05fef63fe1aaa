"""What mutmut found, read from its folder: per module, and survivor by survivor."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from tests.mutation.survivors import Survivor

MUTANTS = Path("mutants")
ALIVE = ("survived", "no tests")
LEAST_SCORE = 0.95


@attrs.frozen
class Module:
    """The mutants of one module by mutmut's words for their ends."""

    name: str
    ends: Mapping[str, int]

    @property
    def mutants(self) -> int:
        """All of them."""
        return sum(self.ends.values())

    @property
    def dead(self) -> int:
        """Killed by a failing test, or by time: an endless loop is noticed as well."""
        return self.ends.get("killed", 0) + self.ends.get("timeout", 0)


@attrs.frozen
class Results:
    """A whole run."""

    modules: tuple[Module, ...]
    names: tuple[str, ...]  # of the mutants that live, as mutmut numbers them
    survivors: tuple[Survivor, ...]  # the same, as they are argued

    @classmethod
    def read(cls) -> Results:
        """The results as they stand in the folder of mutants."""
        modules, names, survivors = [], [], []
        for module, path, ends in _modules():
            modules.append(Module(module, Counter(ends.values())))
            for mutant, end in ends.items():
                if end in ALIVE:
                    diff = get_diff_for_mutant(mutant, path=path).splitlines()
                    names.append(mutant)
                    survivors.append(Survivor.of(function_of(mutant), diff))
        return cls(tuple(modules), tuple(names), tuple(survivors))

    @property
    def unfinished(self) -> int:
        """Mutants without a verdict."""
        return sum(m.mutants - m.dead for m in self.modules) - len(self.survivors)

    @property
    def score(self) -> float:
        """The share of mutants that are noticed."""
        return sum(m.dead for m in self.modules) / sum(m.mutants for m in self.modules)


def _modules() -> Iterator[tuple[str, Path, dict[str, str]]]:
    for meta in sorted(MUTANTS.glob("patton/**/*.meta")):
        path = meta.relative_to(MUTANTS).with_suffix("")
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        if codes:
            module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            yield module, path, {k: status_by_exit_code[v] for k, v in codes.items()}


def function_of(mutant: str) -> str:
    """patton.pairs.xǁPairPoolǁof__mutmut_8 is a mutant of patton.pairs.PairPool.of."""
    module, _, name = mangled_name_from_mutant_name(mutant).rpartition(".")
    plain = name.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return f"{module}.{plain}"


def report(results: Results) -> str:
    """The figures in Markdown."""
    lines = [
        "| module | mutants | killed | by time | argued | noticed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    whole = Module(
        "**core**", sum((Counter(m.ends) for m in results.modules), Counter())
    )
    for module in (*results.modules, whole):
        ends = module.ends
        alive = sum(ends.get(end, 0) for end in ALIVE)
        lines.append(
            f"| {module.name} | {module.mutants} | {ends.get('killed', 0)} "
            f"| {ends.get('timeout', 0)} | {alive} "
            f"| {100 * module.dead / module.mutants:.1f} % |"
        )
    return "\n".join(lines) + "\n"
