"""Safety claims: exact membership of inputs and outputs, replay, files, the rule by intervals, the search."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import Polytope, Property, Query, Safe, claim_from_json
from fpsmt.claims.properties import safe_counterexample, values_between
from fpsmt.engines import Options, decide
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import Float, all_values, exactly, float8_e4m3, float16, float32, less, less_equal
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.networks import Network, execution
from fpsmt.networks.executions import Execution

UNIT = (Fraction(0), Fraction(1))


def f16(*values: float) -> list[Float]:
    return [exactly(float16, v) for v in values]


def one(coefficients: dict[int, int], bound: float, strict: bool = False) -> Polytope:
    return Polytope.of([({k: Fraction(a) for k, a in coefficients.items()}, Fraction(bound), strict)])


def safe(network: Network, box: Any, *unsafe: Polytope, how: Execution | None = None) -> Safe:
    return Safe(network, how or execution(), Property((Query(tuple(box), unsafe),)))


# -- outputs -----------------------------------------------------------------------------------------------------


def test_a_comparison_of_two_outputs_is_that_of_ieee() -> None:
    """y1 ≤ y0 and y1 < y0 for all pairs of a small format, infinities, NaN and zeros among them."""
    values = list(all_values(float8_e4m3))[::3] + [exactly(float8_e4m3, v) for v in (0.0, -0.0, inf, -inf, nan)]
    for strict, compare in ((False, less_equal), (True, less)):
        polytope = one({1: 1, 0: -1}, 0, strict)
        for a in values[::2]:
            for b in values:
                assert polytope.contains([a, b]) == compare(b, a)


def test_special_outputs() -> None:
    top = one({0: -1}, -5)  # y0 ≥ 5
    assert top.contains(f16(inf)) and not top.contains(f16(-inf)) and not top.contains(f16(nan))
    both = one({0: 1, 1: 1}, 0)
    assert both.contains(f16(-inf, 7)) and not both.contains(f16(inf, -inf)) and not both.contains(f16(inf, 0))
    zero = one({0: 1}, 0)
    assert zero.contains(f16(-0.0)) and zero.contains(f16(0.0)) and not one({0: 1}, 0, True).contains(f16(-0.0))
    assert Polytope((), ()).contains(f16(nan)) and not Polytope(((),), (Fraction(-1),)).contains(f16(0))


def test_thresholds_are_exact() -> None:
    """A tenth is no float: the float16 nearest to it is below, and the next one is above."""
    near = exactly(float16, float(np.float16(0.1)))
    at_most, at_least = one({0: 1}, Fraction(1, 10)), one({0: -1}, -Fraction(1, 10))  # type: ignore[arg-type]
    assert at_most.contains([near]) and not at_least.contains([near])
    assert at_least.contains([near.next_up]) and not at_most.contains([near.next_up])
    tiny = Polytope.of([({0: 1}, Fraction(1) - Fraction(1, 10**40), False)])
    assert not tiny.contains(f16(1)) and tiny.contains([f16(1)[0].next_down])


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-4, 4), st.booleans()), max_size=3),
       st.integers(-8, 8), st.integers(-8, 8))  # fmt: skip
def test_membership_is_that_of_real_numbers(rows: Any, a: int, b: int) -> None:
    polytope = Polytope.of([({0: p, 1: q}, c, s) for p, q, c, s in rows])
    wanted = all(p * a + q * b < c if s else p * a + q * b <= c for p, q, c, s in rows)
    assert polytope.contains(f16(a, b)) == polytope.holds([Fraction(a), Fraction(b)]) == wanted
    assert polytope.holds_between([a, b], [a, b]) == wanted


def test_rows_are_checked() -> None:
    for row in (((0, Fraction(0)),), ((1, Fraction(1)), (0, Fraction(1))), ((-1, Fraction(1)),)):
        with pytest.raises(UsageError, match="should name outputs in order"):
            Polytope((row,), (Fraction(0),))
    with pytest.raises(UsageError, match="1 rows, 2 bounds"):
        Polytope(((),), (Fraction(0), Fraction(1)))
    assert one({1: 2, 0: -1}, 0.5).text == "2·y1 - y0 <= 1/2" and one({0: -1}, -5, True).text == "y0 > 5"


# -- inputs ------------------------------------------------------------------------------------------------------


@given(st.integers(-40, 40), st.integers(1, 17), st.integers(0, 40), st.integers(1, 17))
def test_the_floats_of_a_box(a: int, b: int, c: int, d: int) -> None:
    low = Fraction(a, b)
    high = low + Fraction(c, 8 * d)
    inside = [x for x in all_values(float8_e4m3, finite=True) if low <= x.fraction <= high]
    found = values_between(float8_e4m3, low, high)
    if not inside:
        assert found is None
    else:
        assert found is not None
        assert (found[0].ordinal, found[1].ordinal) == (min(x.ordinal for x in inside), max(x.ordinal for x in inside))


def test_boxes_beyond_the_range() -> None:
    top = float16.largest
    assert values_between(float16, top + 1, top + 2) is None and values_between(float16, -top - 2, -top - 1) is None
    found = values_between(float16, -2 * top, 2 * top)
    assert found is not None and (found[0].fraction, found[1].fraction) == (-top, top)
    query = Query((UNIT,), ())
    assert query.has_input(f16(-0.0)) and not query.has_input(f16(inf)) and not query.has_input(f16(nan))


# -- replay ------------------------------------------------------------------------------------------------------

#: 2048·x0 + x1 + x2 in float16: 2048 or 2050 by the order.
NET = Network.sequential("float16", 3, [([[2048, 1, 1]], None)])
POINT = ((Fraction(1), Fraction(1)),) * 3


def test_a_schedule_is_part_of_the_counterexample() -> None:
    claim = safe(NET, POINT, one({0: -1}, -2050))
    usual = safe_counterexample(f16(1, 1, 1))
    other = safe_counterexample(f16(1, 1, 1), {("affine1", 0): (0, (1, 2))})
    assert not claim.replay(usual).violates and claim.replay(other).violates
    refuted = kernel.refute(claim, other)
    assert check_verdict(verdict_to_json(refuted)).name == "refuted"
    with pytest.raises(InternalError, match="does not replay"):
        kernel.refute(claim, usual)
    fixed = safe(NET, POINT, one({0: -1}, -2050), how=execution("left-to-right"))
    with pytest.raises(UsageError, match="is not one that its execution"):
        fixed.replay(other)


def test_an_input_outside_the_box_is_no_counterexample() -> None:
    """Not even when it is outside by 10^−9, or by one float."""
    net = Network.sequential("float32", 1, [([[1]], None)])
    limit = Fraction(1, 2)
    claim = safe(net, [(limit - Fraction(1, 10**9), limit - Fraction(1, 10**9) / 2)], one({0: -1}, 0))
    for x in (exactly(float32, 0.5), exactly(float32, 0.5).next_down):
        assert not claim.replay(safe_counterexample([x])).violates
    inside = safe(net, [(limit - Fraction(1, 10**7), limit)], one({0: -1}, 0))
    assert inside.replay(safe_counterexample([exactly(float32, 0.5)])).violates
    assert not inside.replay(safe_counterexample([exactly(float32, 0.5).next_up])).violates


def test_counterexamples_of_a_wrong_form() -> None:
    claim = safe(NET, POINT, one({0: -1}, -2050))
    bad: list[Any] = [
        3, {"input": ["1", "1", "1"]}, {"input": ["0.1", "1", "1"], "schedules": {}},
        {"input": ["1"], "schedules": {}}, {"input": ["1", "1", "1"], "schedules": {"affine1:9": "(0+(1+2))"}},
    ]  # fmt: skip
    for data in bad:
        with pytest.raises(UsageError):
            claim.replay(data)
    assert not claim.replay({"input": ["nan", "1", "1"], "schedules": {}}).violates


def test_files() -> None:
    claim = safe(NET, [(Fraction(-1, 3), Fraction(1, 3))] * 3, one({0: -1}, -2050, True), Polytope((), ()))
    again = claim_from_json(claim.to_json())
    assert again == claim and again.hash == claim.hash
    data = claim.to_json()
    for path, value in ((("box", 0, 0), "1e9"), (("unsafe", 0, 0, "rhs"), "1/0"), (("unsafe", 0, 0, "strict"), 1)):
        broken: Any = claim.to_json()["property"][0]
        for step in path[:-1]:
            broken = broken[step]
        data = claim.to_json()
        target: Any = data["property"][0]
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value
        with pytest.raises(UsageError, match="cannot be read"):
            claim_from_json(data)


def test_a_claim_fits_its_network() -> None:
    with pytest.raises(UsageError, match="a box of 1 sides, and the network 3 inputs"):
        safe(NET, [UNIT], one({0: 1}, 0))
    with pytest.raises(UsageError, match="names output 1, and the network has 1"):
        safe(NET, POINT, one({1: 1}, 0))


# -- deciding ----------------------------------------------------------------------------------------------------


def test_intervals_prove_up_to_the_last_float() -> None:
    """The sum is at most 2050 whatever the order: > 2050 is out of reach, ≥ 2050 is not."""
    assert decide(safe(NET, POINT, one({0: -1}, -2050, True)), only="intervals").name == "proved"
    assert decide(safe(NET, POINT, one({0: -1}, -2050)), only="intervals").name == "unknown"
    with pytest.raises(EvidenceError):
        from fpsmt.claims import SumInvariant
        from fpsmt.networks import Sum

        kernel.apply("intervals exclude unsafe outputs", SumInvariant(Sum(NET.input.context, tuple(f16(1, 2)))))


def test_every_unsafe_set_has_to_be_excluded() -> None:
    good, open_ = one({0: -1}, -2051), one({0: -1}, -2050)
    assert decide(safe(NET, POINT, good, good), only="intervals").name == "proved"
    assert decide(safe(NET, POINT, good, open_), only="intervals").name == "unknown"
    two = Property((Query(POINT, (good,)), Query(POINT, (open_,))))
    assert decide(Safe(NET, execution(), two), only="intervals").name == "unknown"
    assert decide(Safe(NET, execution(), Property(())), only="intervals").name == "proved"


def test_an_output_that_may_overflow_is_not_excluded() -> None:
    net = Network.sequential("float16", 2, [([[65504, 65504]], None)])
    assert decide(safe(net, [UNIT] * 2, one({0: 1}, -1)), only="intervals").name == "unknown"
    found = decide(safe(net, [UNIT] * 2, one({0: -1}, -100000)), Options(timeout=20))
    assert found.name == "refuted"  # +inf ≥ 100000


def test_the_search_finds_a_schedule() -> None:
    found = decide(safe(NET, POINT, one({0: -1}, -2050)), Options(timeout=20))
    assert found.name == "refuted" and found.counterexample["schedules"]  # type: ignore[union-attr]
