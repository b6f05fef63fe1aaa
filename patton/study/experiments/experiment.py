"""What an experiment is: tasks, figures made of their results, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from patton.study.plots import Plot
from patton.study.results import Figure
from patton.study.settings import Settings
from patton.study.tasks import Result, Task

Results = Mapping[Task, Result]


@attrs.frozen
class Experiment:
    """One study of the paper's evaluation, or one beyond it.

    about: what it measures and how, for the report. tasks: what to do; figures: what
    that gives, of the results of all its tasks; plots: pictures of its figures alone;
    explain: quantity -> why it differs from the paper's, out of its figures;
    conclude: what else they say, a paragraph each.
    """

    name: str
    title: str
    about: str
    tasks: Callable[[Settings], Sequence[Task]]
    figures: Callable[[Settings, Results], list[Figure]]
    plots: Callable[[Sequence[Figure]], list[Plot]]
    explain: Callable[[Sequence[Figure]], Mapping[str, str]] = lambda _: {}
    conclude: Callable[[Sequence[Figure]], Sequence[str]] = lambda _: ()
