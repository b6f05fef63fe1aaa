"""The sentences of the paper's sections 3.2 and 4.2 to 4.5, by number.

A sentence is named by its section, its paragraph in it and its place in that, say
4.4 5.2; headings, tables, captions and equations are not counted, and 4.4 0.1 is the
equation of its fifth paragraph. Those that say what a runtime or a layout has to do, or
what follows from it, are rules and have a test here; the others say why.
"""

from __future__ import annotations

# Sentences of each paragraph.
COUNTS = {
    "3.2": [4],
    "3.2.1": [3, 4, 6, 3],
    "3.2.2": [4, 4, 6, 5, 3, 8, 5],
    "4.2": [3, 4, 4, 11],
    "4.3": [4, 3, 3],
    "4.4": [4, 4, 4, 3, 3, 3, 2, 4],
    "4.5": [4, 3, 5],
}
EQUATIONS = {"4.4 0.1"}

NO_RULES = {
    "3.2.1 2.1": "about models in use",
    "3.2.1 2.2": "says which configuration explains",
    "3.2.1 3.1": "points to a figure",
    "3.2.2 1.1": "says that Values are harder",
    "3.2.2 1.4": "points to a figure",
    "3.2.2 3.1": "a heading",
    "3.2.2 3.5": "measured on workloads of the authors",
    "3.2.2 3.6": "says that there is a problem",
    "3.2.2 6.1": "a heading",
    "3.2.2 6.3": "asks a question",
    "3.2.2 6.5": "says why reserving a row is wrong",
    "3.2.2 6.7": "measured on workloads of the authors",
    "3.2.2 7.1": "names an alternative that is not taken",
    "4.3 2.3": "points to a figure",
}


def numbered() -> set[str]:
    """The names of all sentences and equations."""
    return EQUATIONS | {
        f"{section} {paragraph}.{sentence}"
        for section, counts in COUNTS.items()
        for paragraph, count in enumerate(counts, 1)
        for sentence in range(1, count + 1)
    }
