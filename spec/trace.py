"""From clauses to what states, proves, tests and attacks them, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from spec.clauses import COLUMNS, NEEDS, SPEC, Clause, clauses, column, reasons

Columns = Mapping[str, Mapping[str, Sequence[str]]]


@attrs.frozen
class Trace:
    """Clauses, the files of every column that name them, and why some are missing."""

    clauses: list[Clause]
    columns: Columns
    reasons: Mapping[tuple[str, str], str]

    @classmethod
    def read(cls) -> Trace:
        """The repository as it is."""
        text = SPEC.read_text(encoding="utf-8")
        columns = {name: column(name) for name in COLUMNS}
        return cls(clauses(text), columns, reasons(text))

    def lacks(self, clause: str) -> list[str]:
        """What a clause should have and has not, excused or not."""
        return [
            need
            for need, names in NEEDS.items()
            if not any(clause in self.columns[name] for name in names)
        ]

    def faults(self) -> Iterator[str]:
        """Orphans in either direction, and excuses that excuse nothing."""
        known = {clause.id for clause in self.clauses}
        for name, found in self.columns.items():
            for clause in sorted(found.keys() - known):
                yield f"no such clause: {clause} ({name} in {', '.join(found[clause])})"
        for clause, need in self.reasons:
            if clause not in known:
                yield f"no such clause: {clause} (excused)"
            elif need not in self.lacks(clause):
                yield f"{clause} has a {need}: no reason is needed why not"
        for clause in sorted(known):
            for need in self.lacks(clause):
                if (clause, need) not in self.reasons:
                    yield f"{clause} has no {need}, and SPEC.md does not say why"

    def table(self) -> str:
        """All clauses: how many files name one, its sentence, what it lacks and why."""
        head = ["clause".ljust(15), "paper".ljust(10)]
        lines = ["  ".join(head + [f"{name:>8}" for name in self.columns])]
        for clause in self.clauses:
            counts = [len(found.get(clause.id, ())) for found in self.columns.values()]
            cells = [clause.id.ljust(15), clause.paper.ljust(10)]
            lines.append("  ".join(cells + [f"{count or '-':>8}" for count in counts]))
            lines.append(f"    {clause.sentence}")
            lines += [
                f"    No {need}: {self.reasons.get((clause.id, need), 'WHY?')}"
                for need in self.lacks(clause.id)
            ]
        count = len(self.clauses)
        lines += ["", f"{count} clauses; the columns count files that name one"]
        return "\n".join(lines)
