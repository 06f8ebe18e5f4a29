"""Best approximation: certified to be within one percent of optimal, and honest where the exchange fails."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from fpsmt.engines.approximation import certified_minimax
from fpsmt.errors import Unsupported, UsageError
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.rational import named
from fpsmt.rational.remez import minimax

UNIT = F(-1), F(1)


ERRORS = {
    3: 3.91206e-4, 4: 1.78258e-5, 5: 6.00988e-7, 6: 1.51767e-8, 7: 2.9305e-10, 8: 4.42766e-12, 9: 5.3515e-14,
}  # fmt: skip


@pytest.mark.parametrize(("n", "error"), ERRORS.items())
def test_tanh(n, error):
    best = certified_minimax(named("tanh"), (F(0), F(8)), (n, n))
    lower = best.lower.claim.bound
    assert best.rational.type == (n, n)
    assert lower <= best.bounds.low <= best.bounds.high <= lower * F(101, 100)
    assert float(lower) == pytest.approx(error, rel=1e-5)
    for proof in (best.upper, best.lower):
        assert check_verdict(verdict_to_json(proof)).name == "proved"


def test_root():
    best = certified_minimax(named("sqrt"), (F(0), F(1)), (2, 2))
    assert float(best.lower.claim.bound) == pytest.approx(0.0085014, rel=1e-4)
    assert best.bounds.high <= best.lower.claim.bound * F(101, 100)


def test_ends_of_many_digits():
    best = certified_minimax(named("sigmoid"), (F(-1, 3), F(5, 7)), (2, 1))
    assert best.bounds.high <= best.lower.claim.bound * F(101, 100)


def test_polynomials_and_relative_errors():
    best = certified_minimax(named("exp"), UNIT, (5, 0))
    assert best.rational.is_polynomial and float(best.bounds.low) == pytest.approx(4.52055e-5, rel=1e-5)
    best = certified_minimax(named("exp"), UNIT, (4, 4), relative=True)
    assert best.bounds.high <= best.lower.claim.bound * F(101, 100)
    assert float(best.bounds.low) == pytest.approx(1.53778e-10, rel=1e-5)


@pytest.mark.parametrize("type", [(2, 0), (3, 0)])
def test_relu_by_polynomials(type):
    """x²/2 + x/2 + 1/16 for both degrees, with error 1/16."""
    best = certified_minimax(named("relu"), UNIT, type)
    assert float(best.lower.claim.bound) == pytest.approx(1 / 16, rel=1e-5)
    assert best.bounds.high <= F(1, 16) * F(1002, 1000)


def test_small_errors_need_more_bits():
    best = certified_minimax(named("exp"), UNIT, (15, 15))
    assert best.bounds.high <= best.lower.claim.bound * F(101, 100) < F(1, 10**51)


def test_what_does_not_converge_says_so():
    with pytest.raises(Unsupported, match="no best rational of type"):
        minimax(named("abs"), UNIT, (1, 1))  # the best one is the number 1/2
    with pytest.raises(UsageError, match="has no value"):
        minimax(named("log"), (F(0), F(1)), (1, 1))
    with pytest.raises(UsageError, match="LOW < HIGH"):
        minimax(named("tanh"), (F(1), F(1)), (1, 1))
    with pytest.raises(UsageError, match="degrees"):
        minimax(named("tanh"), UNIT, (-1, 1))
