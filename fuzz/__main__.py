"""`python -m fuzz`: campaigns, volume, situations, seeded bugs, replay.

Each command exits with 1 if what it runs fails. All print the seed that repeats them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

from fuzz import campaign
from fuzz.bugs import catalogue, hunt
from fuzz.driver import drive
from fuzz.exhaust import KNOWN, LONGEST, searches
from fuzz.files import REGRESSIONS, Recorded, minimal
from fuzz.machine import PlacementMachine
from fuzz.situations import LEAST, STEPS, counting
from fuzz.targets import TARGETS, Outcome, canary, run_machine

STEP = (
    "a step is one call of the runtime that it carries out: a block's event, a "
    "publication, or a whole engine step with all of its writes and reads"
)


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
    done = drive(options.seed, options.steps, options.level)
    say(f"{STEP}; level {options.level}, seed {options.seed}")
    say(", ".join(f"{name} {value}" for name, value in done.facts().items()))
    if done.failed is not None and done.failure is not None:
        recorded = Recorded.of(done.failed.world)
        outcome = Outcome(
            "volume", options.seed, done.steps, done.seconds, done.failure, recorded
        )
        say(f"{done.failure.clause}: {done.failure}\n{outcome.save(REGRESSIONS)}")
    return done.failure is None


def situations(options: argparse.Namespace) -> bool:
    """How often each situation occurs in a run of the fast driver."""
    watcher = counting()
    done = drive(options.seed, options.steps, watcher=watcher)
    for name, times in sorted(watcher.counts.items(), key=lambda item: item[1]):
        say(f"{times:8}  {name}")
    missed = [name for name, times in watcher.counts.items() if times < options.least]
    say(f"{len(watcher.counts)} situations in {done.steps} steps, seed {options.seed}")
    say(f"fewer than {options.least} times: {', '.join(missed) or 'none'}")
    return not missed and done.failure is None


def bugs(options: argparse.Namespace) -> bool:
    """Every seeded bug: caught by its clause, or not at all where it is none."""
    wrong = 0
    for planted in catalogue().values():
        if options.only in planted.name:
            found = hunt(planted)
            good = found.caught == (planted.clause is not None)
            wrong += not good
            verdict = "caught" if found.caught else "survived"
            mark = "" if good else "  WRONG"
            clause = planted.clause or "-"
            say(f"{clause:13} {found.steps:6} {verdict:8} {planted.name}{mark}")
    say(f"{len(catalogue())} bugs, {wrong} wrong")
    return wrong == 0


def machine(options: argparse.Namespace) -> bool:
    """The stateful machine, with its speed and what it accepts."""
    begun = process_time()
    failure = run_machine(options.seed, options.examples)
    spent = process_time() - begun
    tried, done = PlacementMachine.tried, PlacementMachine.done
    for name in sorted(tried):
        say(f"{done[name]:8} of {tried[name]:8}  {name}")
    rate, share = done.total() / spent, done.total() / tried.total()
    say(f"{done.total()} operations carried out, {share:.0%} of those drawn")
    say(f"{rate:.0f} a second of one core, seed {options.seed}; {failure or 'good'}")
    return failure is None


def replay(options: argparse.Namespace) -> bool:
    """A file of events; says how it ends."""
    failure = Recorded.read(options.file).replay()
    say(f"{failure.clause}: {failure}" if failure else "no failure")
    return failure is None


def exhaust(options: argparse.Namespace) -> bool:
    """All sequences of operations up to a length, on two minimal geometries."""
    good = True
    for name, found in searches(options.depth, options.jobs):
        expected = KNOWN[name].up_to(options.depth)
        say("\n".join([f"{name}:", *found.lines()]))
        if found.failure is not None and found.recorded is not None:
            say(f"{found.failure.clause}: {found.failure}")
            path = REGRESSIONS / f"exhaust-{found.failure.clause}.jsonl"
            minimal(found.recorded, found.failure.clause).write(path, found.failure)
            say(str(path))
        elif found.numbers() != expected:
            say(f"other numbers than are known: {expected}")
        good = good and found.numbers() == expected
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


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    commands = main_parser.add_subparsers(required=True)

    def command(name: str, run: object, text: str | None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text)
        added.set_defaults(run=run)
        added.add_argument("--seed", type=int, default=1)
        return added

    command("smoke", smoke, smoke.__doc__).add_argument(
        "--seconds", type=float, default=3.0
    )
    many = command("volume", volume, volume.__doc__)
    many.add_argument("--steps", type=int, default=10**6)
    many.add_argument("--level", choices=("touched", "everything"), default="touched")
    met = command("situations", situations, situations.__doc__)
    met.add_argument("--steps", type=int, default=STEPS)
    met.add_argument("--least", type=int, default=LEAST)
    command("bugs", bugs, bugs.__doc__).add_argument("--only", default="")
    rules = command("machine", machine, machine.__doc__)
    rules.add_argument("--examples", type=int, default=200)
    all_of_them = command("exhaust", exhaust, exhaust.__doc__)
    all_of_them.add_argument("--depth", type=int, default=LONGEST)
    all_of_them.add_argument("--jobs", type=int, default=1)
    command("replay", replay, replay.__doc__).add_argument("file", type=Path)
    long = command("campaign", run_campaign, run_campaign.__doc__)
    long.add_argument("--minutes", type=float, default=10.0)
    long.add_argument("--jobs", type=int, default=1)
    long.add_argument("--cluster", help="address of a Dask scheduler")
    long.add_argument("--ledger", type=Path, default=campaign.LEDGER)
    long.add_argument("--target", action="append", choices=[*TARGETS])
    return main_parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the exit status."""
    options = parser().parse_args(arguments)
    return 0 if options.run(options) else 1


if __name__ == "__main__":
    sys.exit(main())
