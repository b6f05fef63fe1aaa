from __future__ import annotations

from random import Random

import pytest
import z3

from proofs.lemmas import FALSE_LEMMAS, LEMMAS, VARIABLES, Lemma, abstract
from proofs.solver import ask

ALL_LEMMAS = (*LEMMAS, *FALSE_LEMMAS)


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.name)
def test_lemma_is_proved(lemma: Lemma) -> None:
    """For all integers, with the solver's true operators."""
    assert "proved" == ask(lemma.goal.question).status


@pytest.mark.parametrize("lemma", FALSE_LEMMAS, ids=lambda lemma: lemma.name)
def test_false_lemma_is_refuted(lemma: Lemma) -> None:
    """A near miss has a counterexample."""
    answer = ask(lemma.goal.question)
    values = [(v, z3.IntVal(answer.values.get(n, 0))) for n, v in VARIABLES.items()]
    formula = z3.substitute(lemma.formula, *values)

    assert "refuted" == answer.status
    assert not z3.is_true(z3.simplify(formula))


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.name)
def test_instances_are_of_the_formula_that_is_proved(lemma: Lemma) -> None:
    """An instance is the proved formula with operators forgotten and terms put in."""
    terms = {name: z3.Int(f"new_{name}") for name in VARIABLES}
    renamed = z3.substitute(
        lemma.formula, *((VARIABLES[name], term) for name, term in terms.items())
    )

    assert abstract(renamed).eq(lemma.instance(**terms))


def test_lemmas_hold_on_integers() -> None:
    """Each lemma at random small integers, where all its premises often hold."""
    random = Random(2)
    for lemma in LEMMAS:
        for _ in range(300):
            values = [(v, z3.IntVal(random.randint(-2, 9))) for v in VARIABLES.values()]
            formula = z3.simplify(z3.substitute(lemma.formula, *values))
            # Division by zero is anything to a solver; each lemma excludes it.
            assert not z3.is_false(formula), lemma.name


def test_names_are_distinct() -> None:
    """A fact is known by the name of its lemma."""
    assert len(ALL_LEMMAS) == len({lemma.name for lemma in ALL_LEMMAS})
