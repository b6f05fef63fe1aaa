"""Two solvers on the same files: what counts as agreement, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import z3

from proofs.solver import Goal

pytest.importorskip("cvc5", reason="needs the extra cross")

from proofs import cross
from proofs.cross import Opinions, all_agree, main, opinions
from proofs.lemmas import FALSE_LEMMAS, LEMMAS, Lemma
from proofs.second import ask_cvc5
from proofs.solver import Answer, Status, ask

X, Y = z3.Ints("x y")
TRUE = Goal("all is well", [X > 1], X > 0)
FALSE = Goal("all is not well", [X > 1], X > 2)


def told(z3_says: Status, cvc5_says: Status) -> str:
    said: dict[str, Status] = {"z3": z3_says, "cvc5": cvc5_says}
    return Opinions("theorem.1.1", "a claim", said, {}).verdict


def test_only_two_proofs_are_an_agreement() -> None:
    """That a solver does not know is not that it agrees."""
    assert "agree" == told("proved", "proved")
    assert "DISAGREE" == told("proved", "refuted") == told("refuted", "proved")
    assert "unknown" == told("proved", "unknown") == told("unknown", "refuted")
    assert "refuted" == told("refuted", "refuted")


def test_a_file_has_a_subject_and_a_claim(tmp_path: Path) -> None:
    path = tmp_path / "some_theorem.3.12.smt2"
    TRUE.write(path)
    found = opinions(path, seeds=2)

    assert ("some_theorem", "all is well") == (found.subject, found.claim)
    assert {"z3": "proved", "cvc5": "proved"} == found.said
    assert all(0 < seconds < 60 for seconds in found.seconds.values())


def test_the_command_tells_what_is_amiss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line a theorem, and one for each file without agreement."""
    TRUE.write(tmp_path / "good.1.1.smt2")
    FALSE.write(tmp_path / "bad.1.1.smt2")

    assert 1 == main([str(tmp_path), "--jobs", "1"])
    out = capsys.readouterr().out
    assert "z3: refuted, cvc5: refuted: bad.1.1: all is not well" in out
    assert "good.1.1" not in out
    assert "2 files" in out
    assert "NOT AGREED" in out


def test_agreement_ends_with_status_0(tmp_path: Path) -> None:
    TRUE.write(tmp_path / "good.1.1.smt2")

    assert 0 == main([str(tmp_path), "--jobs", "1"])


def test_no_files_are_no_agreement(tmp_path: Path) -> None:
    assert not all_agree([])
    assert 1 == main([str(tmp_path), "--jobs", "1"])


def test_one_seed_without_luck_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each seed has to prove it."""

    def moody(text: str, seed: int) -> Answer:
        return Answer("unknown", 0.0) if seed == 2 else ask(text, seed)

    monkeypatch.setattr(cross, "SOLVERS", {"z3": moody, "cvc5": ask_cvc5})
    path = tmp_path / "good.1.1.smt2"
    TRUE.write(path)

    assert "agree" == opinions(path, seeds=2).verdict
    assert "unknown" == opinions(path, seeds=3).verdict


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.name)
def test_lemmas_are_proved_twice(lemma: Lemma) -> None:
    """The nonlinear facts that all else rests on, by two solvers."""
    assert "proved" == ask_cvc5(lemma.goal.question).status


@pytest.mark.parametrize("lemma", FALSE_LEMMAS, ids=lambda lemma: lemma.name)
def test_false_lemmas_are_refuted_twice(lemma: Lemma) -> None:
    assert "refuted" == ask_cvc5(lemma.goal.question).status


def test_a_limit_makes_an_unknown() -> None:
    """A question beyond the limit is not called proved."""
    a, b, c = z3.Ints("a b c")
    sizes = [a > 0, b > 0, c > 0]
    fermat = Goal("", sizes, a * a * a + b * b * b != c * c * c)

    assert "unknown" == ask_cvc5(fermat.question, limit_ms=50).status


def test_what_a_small_logic_has_no_words_for_is_decided_in_a_larger_one() -> None:
    """Integers and their functions, quantifiers, products, reals, sorts."""
    f = z3.Function("f", z3.IntSort(), z3.IntSort())
    r, things = z3.Real("r"), z3.DeclareSort("Thing")
    a, b = z3.Consts("a b", things)
    goals = (
        Goal("", [f(X) + 2 * Y > 1, Y < 0], f(X) > 2),
        Goal("", [z3.ForAll(X, f(X) > 0)], f(Y) > 0),
        Goal("", [X > 0, Y > 0], X * Y > 0),
        Goal("", [X > 0], X % 3 < 3),
        Goal("", [r > 0], r + r > 0),
        Goal("", [a == b], b == a),
    )

    for goal in goals:
        alone = goal._replace(premises=[])
        assert "proved" == ask_cvc5(goal.question).status
        assert ask(alone.question).status == ask_cvc5(alone.question).status
