"""Exact rationals, their poles, the trainable forms, and formulas."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.rational import Builder, Formula, Rational, Trainable, named, number_text, rational
from fpsmt.rational.polynomials import count_roots, isolate_roots, nonnegative_on, polynomial

small = st.fractions(-8, 8, max_denominator=8)
coefficients = st.lists(small, min_size=1, max_size=5).map(tuple)
denominators = coefficients.filter(any)
rationals = st.builds(Rational, coefficients, denominators)


def value(r, x):
    try:
        return r(x)
    except UsageError:
        return None


@given(rationals, rationals, small)
def test_algebra_is_that_of_the_values(r, s, x):
    a, b = value(r, x), value(s, x)
    if a is None or b is None:
        return
    assert (r + s)(x) == a + b and (r * s)(x) == a * b and (r - s)(x) == a - b
    assert r.reduced()(x) == a and r.same_function(r.reduced())
    if b:
        assert (r / s)(x) == a / b
    outer = value(r, b)
    if outer is not None:
        assert r.compose(s)(x) == outer


@given(rationals, small)
def test_partial_fractions_add_up(r, x):
    whole, parts = r.partial_fractions()
    total = whole
    for u, v, k in parts:
        assert u.type[0] < v.type[0]
        power = Rational((1,))
        for _ in range(k):
            power = power * v
        total = total + u / power
    assert total.same_function(r)


@given(rationals)
def test_derivative_by_difference_quotients(r):
    """(r(x) − r(z))/(x − z) at x = z, by exact division of polynomials."""
    z = F(3, 7)
    if value(r, z) is None:
        return
    quotient = ((r - Rational((r(z),))) / Rational((-z, 1))).reduced()
    assert quotient(z) == r.derivative()(z)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=5), st.integers(-7, 7), st.integers(-7, 7))
def test_roots_are_counted_and_isolated(roots, low, high):
    p = polynomial([1])
    for root in roots:
        p *= polynomial([-root, 1])
    if low > high:
        low, high = high, low
    inside = sorted({root for root in roots if low <= root <= high})
    assert count_roots(p, F(low), F(high)) == len(inside)
    found = isolate_roots(p, F(low), F(high), F(1, 3))
    assert len(found) == len(inside) and all(a <= root <= b for (a, b), root in zip(found, inside))
    halves = [F(k, 2) for k in range(2 * low, 2 * high + 1)]  # between any two integers there is one
    assert nonnegative_on(p, F(low), F(high)) == all(p(fmpq(*x.as_integer_ratio())) >= 0 for x in halves)
    assert nonnegative_on(p * p, F(low), F(high))


def test_signs_of_polynomials():
    assert nonnegative_on(polynomial([0, 0, 1]), F(-1), F(1))
    assert not nonnegative_on(polynomial([0, 1]), F(-1), F(1))
    assert nonnegative_on(polynomial([0, 1]), F(0), F(1))
    assert not nonnegative_on(polynomial([0, -1]), F(0), F(1))
    assert nonnegative_on(polynomial([2, -3, 1]), F(2), F(9)) and nonnegative_on(polynomial([2, -3, 1]), F(-1), F(1))
    assert not nonnegative_on(polynomial([2, -3, 1]), F(1), F(2))  # negative inside, zero at both ends
    assert not nonnegative_on(polynomial([-1, 0, 1]), F(-2), F(2))


def test_poles():
    r = Rational((1,), (-2, 0, 1))
    assert r.count_poles(1, 2) == 1 and r.count_poles(-1, 1) == 0 and len(r.poles()) == 2
    ((low, high),) = r.poles(0, 9, F(1, 10**6))
    assert low * low < 2 < high * high and high - low <= F(1, 10**6)
    assert Rational((-1, 0, 1), (-1, 1)).count_poles(0, 2) == 0  # (x² − 1)/(x − 1) has none
    assert Rational((1,), (0, 1)).poles(0, 1) == [(0, 0)]
    with pytest.raises(UsageError, match="denominator"):
        Rational((1,), (0,))
    with pytest.raises(UsageError, match="is 0 at x = 1"):
        Rational((1,), (-1, 1))(1)


@pytest.mark.parametrize("version", ["A", "B", "unsafe"])
@pytest.mark.parametrize("type", [(3, 2), (5, 4)])
def test_trainable_forms(version, type):
    rng = np.random.default_rng(0)
    t = Trainable.of(version, rng.normal(size=type[0] + 1), rng.normal(size=type[1]))
    assert t.type == type
    again = Trainable.of(version, *t.arrays())
    assert again == t
    pieces = t.pieces(F(-3), F(3))
    assert pieces[0][0][0] == -3 and pieces[-1][0][1] == 3
    for ((_, end), _), ((start, _), _) in itertools.pairwise(pieces):
        assert end == start
    for (low, high), r in pieces:
        for x in (low, (2 * low + high) / 3, high):
            if r is not None:
                assert r(x) == t(x)
        if r is not None and version != "unsafe":
            assert r.count_poles(low, high) == 0
    a, b = t.arrays()
    x = 1.25
    inner = sum(c * x**j for j, c in enumerate(b, 1))
    below = {"A": 1 + sum(abs(c * x**j) for j, c in enumerate(b, 1)), "B": 1 + abs(inner), "unsafe": 1 + inner}[version]
    assert float(t(F(x))) == pytest.approx(sum(c * x**i for i, c in enumerate(a)) / below)


def test_an_affine_layer_is_absorbed():
    t = Trainable("unsafe", (F(1), F(2), F(0), F(-3)), (F(1, 2), F(3)))
    inside = t.affine_input(F(2), F(1, 3))
    assert inside.type == t.type
    for x in (F(0), F(1), F(-7, 5)):
        assert inside(x) == t(2 * x + F(1, 3))


def test_trainable_errors():
    with pytest.raises(UsageError, match="version"):
        Trainable("C", (F(1),), ())
    with pytest.raises(UsageError, match="not finite"):
        Trainable.of("A", [1.0, float("nan")], [])
    with pytest.raises(UsageError, match="unsafe"):
        Trainable("A", (F(1),), ()).affine_input(F(1), F(1))


def network():
    build = Builder()
    square = build.rational(Rational((0, 0, 1)), 0)
    shifted = build.affine(F(1, 3), (2, square), (-1, 0))
    return build.formula(build.quotient(build.product(shifted, 0), build.affine(2, (1, square))))


@given(small)
def test_a_network_is_its_expansion(x):
    net = network()
    y = x * (F(1, 3) + 2 * x * x - x) / (2 + x * x)
    assert net(x) == y == net.expand()(x)
    ball = net.ball(x, 100)
    assert ball.contains(0) if y == 0 else abs(float(ball.mid()) - float(y)) < 1e-12
    assert net.then(net)(x) == net(net(x))


def test_measures_of_a_network():
    net = network()
    assert (net.depth, net.is_rational, net.degree) == (4, True, 3)
    many = net
    for _ in range(20):
        many = many.then(net)
    assert many.degree >= 3**21 and "10^" in str(many)
    with pytest.raises(Unsupported, match="degree"):
        many.expand()
    assert Formula.from_json(net.to_json()) == net
    assert named("tanh").then(net)(F(0)) == 0 and not named("tanh").then(net).is_rational
    with pytest.raises(UsageError, match="not rational"):
        _ = named("tanh").degree


@pytest.mark.parametrize(
    "data",
    [[], "x", [{"step": "rational", "at": 1, "numerator": ["1"], "denominator": ["1"]}], [{"step": "loop", "at": 0}],
     [{"step": "function", "at": 0, "name": "nothing"}]],
)  # fmt: skip
def test_formulas_that_cannot_be_read(data):
    with pytest.raises(UsageError):
        Formula.from_json(data)


def test_texts():
    assert str(rational(Rational((0, F(1, 2)), (1, 0, -1)))) == "1/2*x/(1 - x^2)"
    assert [number_text(F(x)) for x in ("0", "1e-100", "-0.25", "1234500")] == ["0", "1e-100", "-0.25", "1234500"]
    assert number_text(F(1, 7) ** 30).startswith("about 4.4")
