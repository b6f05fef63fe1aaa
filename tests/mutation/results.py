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
    def unjudged(self) -> int:
        """Those that the run did not come to."""
        return self.mutants - self.dead - self.alive

    @property
    def score(self) -> float:
        """The share of the judged mutants that are noticed."""
        return self.dead / max(1, self.dead + self.alive)

    @property
    def alive(self) -> int:
        """Those that no test notices, or that no test reaches."""
        return sum(self.ends.get(end, 0) for end in ALIVE)

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
    def core(self) -> Module:
        """All modules as one."""
        return Module(
            "**core**", sum((Counter(m.ends) for m in self.modules), Counter())
        )


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
        "| module | mutants | killed | by time | alive | not judged | noticed |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for module in (*results.modules, results.core):
        cells = (
            *(module.name, module.mutants, module.ends.get("killed", 0)),
            *(module.ends.get("timeout", 0), module.alive, module.unjudged),
            f"{100 * module.score:.1f} %" if module.dead + module.alive else "",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"
