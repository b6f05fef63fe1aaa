"""`python -m fuzz`: campaigns, volume, situations, seeded bugs, replay.

Each command exits with 1 if what it runs fails, with 2 if it cannot run: a file or a
scheduler is not there, or not what it should be. What is drawn at random is repeated by
the seed that is printed with it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzz import campaign, moments
from fuzz.bugs import catalogue
from fuzz.exhaust import KNOWN, LONGEST, searches
from fuzz.files import REGRESSIONS, Recorded, minimal
from fuzz.situations import LEAST, STEPS
from fuzz.targets import TARGETS, Outcome, canary
from fuzz.tiers import Ran, Rules, drive_all, hunted, machined, over, shares

STEP = (
    "a step is one call of the runtime that it carries out: a block's event, a "
    "publication, or a whole engine step with all of its writes and reads"
)
LEAST_ACCEPTED = 0.5  # of what the machine draws


def say(text: str) -> None:
    """One line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def smoke(options: argparse.Namespace) -> bool:
    """All targets briefly; the canary must fail."""
    good = True
    for name, target in TARGETS.items():
        outcome = target(options.seed, options.seconds)
        good = good and outcome.failure is None
        say(f"{name:12} {outcome.steps:7} steps  {outcome.failure or 'no failure'}")
    found = canary(options.seed, 60.0).failure
    say(f"{'canary':12} {'found' if found else 'NOT FOUND'}: {found}")
    return good and found is not None


def volume(options: argparse.Namespace) -> bool:
    """Many steps of the fast driver."""
    done = drive_all(options.seed, options.steps, options.jobs, options.level)
    say(f"{STEP}; level {options.level}, seed {options.seed}")
    return told(done)


def told(done: Ran) -> bool:
    """Say how a run went, and keep its failures; whether nothing has failed."""
    say(f"{done}")
    return kept(done.failures)


def kept(failures: Sequence[Outcome]) -> bool:
    """Say what failed, and where its events are; whether nothing has."""
    for outcome in failures:
        assert outcome.failure is not None
        say(f"{outcome.failure.clause}: {outcome.failure}")
        say(f"{outcome.save(REGRESSIONS)}")
    return not failures


def situations(options: argparse.Namespace) -> bool:
    """How often each situation occurs in a run of the fast driver."""
    done = drive_all(options.seed, options.steps, options.jobs, counted=True)
    for name, times in sorted(done.counts.items(), key=lambda item: item[1]):
        mark = "" if times >= options.least else "  TOO FEW"
        say(f"{times:8} of {options.least:4}  {name}{mark}")
    known, least = moments.KNOWN, options.least
    missed = [name for name in known if done.counts[name] < least]
    say(f"{len(known)} situations, seed {options.seed}, at least {least} times each")
    say(f"fewer: {', '.join(missed) or 'none'}")
    return told(done) and not missed


def bugs(options: argparse.Namespace) -> bool:
    """Every seeded bug: caught by its clause, or not at all where it is none."""
    names = [name for name in catalogue() if options.only in name]
    if not names:
        say(f"error: no bug has {options.only!r} in its name")
        return False
    # What takes long is begun first, so that no process waits for another.
    names.sort(key=lambda name: (not catalogue()[name].slow, -catalogue()[name].budget))
    verdicts = over(options.jobs, hunted, names)
    for verdict in sorted(verdicts, key=lambda v: (v.clause or "", v.name)):
        say(f"{verdict}")
    wrong = sum(not verdict.good for verdict in verdicts)
    say(f"{len(verdicts)} bugs, {wrong} wrong")
    if options.only:
        return wrong == 0
    found = canary(1, 60.0).failure
    say(f"canary {'found' if found else 'NOT FOUND'}: {found}")
    return wrong == 0 and found is not None


def machine(options: argparse.Namespace) -> bool:
    """The stateful machine, with its speed and what it accepts."""
    pieces = [
        (options.seed + 1_000_003 * job, share)
        for job, share in enumerate(shares(options.examples, options.jobs))
    ]
    ran = Rules.together(over(options.jobs, machined, pieces))
    for name in sorted(ran.tried):
        say(f"{ran.done[name]:8} of {ran.tried[name]:8}  {name}")
    rate, share = (
        ran.done.total() / ran.seconds,
        ran.done.total() / ran.tried.total(),
    )
    say(f"{ran.done.total()} operations carried out, {share:.0%} of those drawn")
    say(f"{rate:.0f} a second of one core, seed {options.seed}")
    return kept(ran.failures) and share >= LEAST_ACCEPTED


def replay(options: argparse.Namespace) -> bool:
    """A file of events; says how it ends."""
    failure = Recorded.read(options.file).replay()
    say(f"{failure.clause}: {failure}" if failure else "no failure")
    return failure is None


def exhaust(options: argparse.Namespace) -> bool:
    """All sequences of operations up to a length, on two minimal geometries."""
    good = True
    for name, found in searches(options.depth, options.jobs):
        known, numbers = KNOWN[name], found.numbers()
        same = known.up_to(options.depth) == numbers.up_to(len(known.sequences))
        say("\n".join([f"{name}:", *found.lines()]))
        if found.failure is not None and found.recorded is not None:
            say(f"{found.failure.clause}: {found.failure}")
            path = REGRESSIONS / f"exhaust-{found.failure.clause}.jsonl"
            minimal(found.recorded, found.failure.clause).write(path, found.failure)
            say(str(path))
        elif not same:
            say(f"other numbers than are known: {known}")
        good = good and same and found.failure is None
    return good


def run_campaign(options: argparse.Namespace) -> bool:
    """All targets for a time, with a ledger."""
    failures = campaign.run(
        options.minutes,
        options.jobs,
        cluster=options.cluster,
        ledger=options.ledger,
        names=options.target,
        say=say,
    )
    return failures == 0


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number from `least` on: nothing is done where nothing is asked."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            accepted = f"a whole number from {least}"
            raise argparse.ArgumentTypeError(f"{text!r}, accepted: {accepted}")
        return int(text)

    return read


def time(text: str) -> float:
    """Reads a time that is not zero, and that ends."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        accepted = "a number above 0"
        raise argparse.ArgumentTypeError(f"{text!r}, accepted: {accepted}")
    return value


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    commands = main_parser.add_subparsers(required=True)

    def command(name: str, run: object, text: str | None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text)
        added.set_defaults(run=run)
        return added

    def seeded(name: str, run: object, text: str | None) -> argparse.ArgumentParser:
        added = command(name, run, text)
        added.add_argument("--seed", type=int, default=1)
        return added

    def jobs(added: argparse.ArgumentParser) -> argparse.ArgumentParser:
        added.add_argument("--jobs", type=whole(1), default=1, help="processes")
        return added

    brief = seeded("smoke", smoke, smoke.__doc__)
    brief.add_argument("--seconds", type=time, default=3.0)
    many = jobs(seeded("volume", volume, volume.__doc__))
    many.add_argument("--steps", type=whole(1), default=10**6)
    many.add_argument("--level", choices=("touched", "everything"), default="touched")
    met = jobs(seeded("situations", situations, situations.__doc__))
    met.add_argument("--steps", type=whole(1), default=STEPS)
    met.add_argument("--least", type=whole(0), default=LEAST)
    jobs(command("bugs", bugs, bugs.__doc__)).add_argument("--only", default="")
    rules = jobs(seeded("machine", machine, machine.__doc__))
    rules.add_argument("--examples", type=whole(1), default=200)
    all_of_them = jobs(command("exhaust", exhaust, exhaust.__doc__))
    all_of_them.add_argument("--depth", type=whole(1), default=LONGEST)
    command("replay", replay, replay.__doc__).add_argument("file", type=Path)
    long = jobs(command("campaign", run_campaign, run_campaign.__doc__))
    long.add_argument("--minutes", type=time, default=10.0)
    long.add_argument("--cluster", help="address of a Dask scheduler")
    long.add_argument("--ledger", type=Path, default=campaign.LEDGER)
    long.add_argument("--target", action="append", choices=[*TARGETS])
    return main_parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        return 0 if options.run(options) else 1
    except OSError as error:  # a file or a scheduler, not there or not of use
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
