"""Identities, certificates of positivity, what coefficients absorb, and sizes that are needed."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import Absorbed, Identity, Nonnegative, SizeNeeded, claim_from_json
from fpsmt.claims.absorption import CURVATURE_LEFT, SECOND_DIFFERENCE
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.rational import Trainable
from fpsmt.rational.affine import cannot_absorb, parameters, shifted_parameters, unsafe_text
from fpsmt.rational.symbols import same, value_at

numbers = st.fractions(-4, 4, max_denominator=5)


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ("(x + y)**2", "x**2 + 2*x*y + y**2", "proved"),
        ("(x**2 - 1)/(x - 1)", "x + 1", "proved"),
        ("1/x + 1/y", "(x + y)/(x*y)", "proved"),
        ("-x/3", "x*(1/6 - 1/2)", "proved"),
        ("x**2", "x**3", "refuted"),
        ("1/x", "x", "refuted"),
        ("2", "3", "refuted"),
    ],
)
def test_identities(left, right, verdict):
    found = decide(Identity(left, right))
    assert found.name == verdict and same(left, right) == (verdict == "proved")
    assert check_verdict(verdict_to_json(found)).name == verdict
    assert claim_from_json(found.claim.to_json()) == found.claim


@pytest.mark.parametrize(
    "text", ["x**y", "x**-1", "f(x)", "x < 1", "1.5*x", "x[0]", "", "x;y", "__import__('os')", "x**65", "True"]
)
def test_what_is_no_expression(text):
    with pytest.raises(UsageError):
        Identity(text, "x")


def test_undefined_sides():
    with pytest.raises(UsageError, match="divides by 0"):
        decide(Identity("1/(x - x)", "1"))
    assert value_at("1/x", {"x": F(0)}) is None
    with pytest.raises(InternalError):  # both sides must be defined
        kernel.refute(Identity("1/x", "2/x"), {"values": {"x": "0"}})


def test_certificates():
    claim = Nonnegative("x**2 + y**2 - 2*x*y + z", ("z",))
    parts = [["1", "x - y", []], ["1", "1", [0]]]
    assert kernel.apply("certificate of positivity", claim, {"parts": parts}).name == "proved"
    for bad in ([["-1", "x - y", []]], [["1", "x", []]], [["1", "x - y", []], ["1", "1", [1]]], []):
        assert kernel.apply("certificate of positivity", claim, {"parts": bad}).name == "unknown"
    assert decide(Nonnegative("x*y", ("x",))).name == "refuted"
    assert decide(Nonnegative("x**2 - 2*x + 1", ())).name == "unknown"
    with pytest.raises(EvidenceError):
        kernel.apply("certificate of positivity", Identity("x", "x"), {"parts": []})


# -- absorption -----------------------------------------------------------------------------------------------


@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=2, max_size=2), numbers, numbers, numbers)
def test_shifted_parameters_are_those_of_the_exact_map(a, b, scale, shift, u):
    values = {f"a{i}": c for i, c in enumerate(a)} | {f"b{j}": c for j, c in enumerate(b, 1)}
    values |= {"g": scale, "t": shift, "u": u}
    names = parameters((2, 2))
    left = value_at(unsafe_text(*names, "g*u + t"), values)
    right = value_at(unsafe_text(*shifted_parameters((2, 2), "g", "t"), "u"), values)
    if left is not None and right is not None:
        assert left == right
        try:
            moved = Trainable("unsafe", tuple(a), tuple(b)).affine_input(scale, shift)
        except UsageError:
            return
        assert moved(u) == left


@pytest.mark.parametrize("version", ["A", "B"])
def test_forms_that_do_not_absorb_shifts(version):
    verdict = decide(Absorbed(version, (5, 4)))
    assert verdict.name == "refuted" and check_verdict(verdict_to_json(verdict)).name == "refuted"
    assert decide(Absorbed(version, (5, 4), "scale")).name == "proved"
    with pytest.raises(InternalError):  # a scale alone is absorbed
        kernel.refute(Absorbed(version, (0, 1)), {"a": ["1"], "b": ["1"], "scale": "2", "shift": "0"})
    with pytest.raises(InternalError):  # another type
        kernel.refute(Absorbed(version, (1, 1)), {"a": ["1"], "b": ["1"], "scale": "1", "shift": "1"})


def test_shifts_that_are_absorbed_are_not_said_to_be_impossible():
    """Without a kink nothing stands in the way; form B with an inner polynomial that has no simple root has none."""
    assert cannot_absorb(Trainable("A", (F(1), F(2)), (F(0),)), F(1), F(1)) is None
    assert cannot_absorb(Trainable("B", (F(1),), (F(0), F(1))), F(1), F(1)) is None  # 1 + x², moved: 1/(2 + …), a P/Q
    assert cannot_absorb(Trainable("unsafe", (F(1),), (F(1),)), F(1), F(1)) is None
    even = Trainable("A", (F(1),), (F(0), F(1)))  # 1 + |x|²: no kink
    assert cannot_absorb(even, F(1), F(1)) is None
    # (1 + u)/(1 + |x| + …) of form B: P = 1, q = ±(x) moved back by nothing
    assert cannot_absorb(Trainable("B", (F(1),), (F(1),)), F(3), F(0)) is None


# -- sizes ----------------------------------------------------------------------------------------------------


def test_sizes_that_are_needed():
    first, second = Identity(*SECOND_DIFFERENCE), Nonnegative(*CURVATURE_LEFT)
    parts = [
        ["1", "1", [3, 0]], ["1", "1", [3, 1]], ["1", "s", [2]], ["2", "s", [2, 0]], ["4", "s**2", [2]],
        ["8", "s**2", [3]],
    ]  # fmt: skip
    premises = [decide(first), kernel.apply("certificate of positivity", second, {"parts": parts})]
    rule = "curvature of small networks"
    small = SizeNeeded(F(1, 10**50), 70, F(1), F("1.13"), F("0.8"))
    assert kernel.apply(rule, small, premises=premises).name == "proved"
    for size, error in ((71, F(1, 10**50)), (0, F(1, 3)), (10**9, F(1, 10**50))):
        claim = SizeNeeded(error, size, F(1), F("1.13"), F("0.8"))
        assert kernel.apply(rule, claim, premises=premises).name == "unknown"
    for wrong in (premises[::-1], premises[:1], [decide(Identity("x", "x")), premises[1]]):
        with pytest.raises(EvidenceError):
            kernel.apply(rule, small, premises=wrong)
    assert claim_from_json(small.to_json()) == small and "70 parameters" in small.text
