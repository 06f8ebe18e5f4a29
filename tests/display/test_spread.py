"""Plots of how far apart the results of a sum are: what is reached, bounded, exact, named and sampled."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from fpsmt.claims import SumInvariant
from fpsmt.display.spread import SpreadView, exact_sum, named_orders, sample, spread
from fpsmt.engines import decide
from fpsmt.engines.extremes import extremes
from fpsmt.engines.sums import outcomes
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float16
from fpsmt.networks import execution
from fpsmt.networks.brackets import bracket
from fpsmt.networks.extremes import Box, BoxSum
from fpsmt.networks.outcomes import Sum, reachable
from fpsmt.networks.packed import PackedSum

SVG = "{http://www.w3.org/2000/svg}"


def f16(*values: float) -> tuple[Float, ...]:
    return tuple(exactly(float16, v) for v in values)


def total(*values: float, how: Any = "contiguous", **more: Any) -> Sum:
    return Sum(context("float16"), f16(*values), None, execution(how, **more))


SIX = total(2048, 1, 1, 3, 0.5, -2048)


def of_class(view: SpreadView, name: str) -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(view.svg).iter() if e.get("class") == name]


def test_every_result_has_a_tick() -> None:
    view = spread(SIX)
    assert view.kind == "every result" and view.outcomes == tuple(reachable(SIX))
    assert view.heading == f"every result: {len(view.outcomes)} from {view.low} to {view.high}"
    assert len(of_class(view, "tick")) == len(view.outcomes)
    assert spread(outcomes(SIX)) == view
    assert view._repr_html_() == f"<div>{view.svg}</div>"
    assert str(view) == "\n".join(view.lines())


def test_the_exact_sum() -> None:
    assert exact_sum(SIX) == Fraction(11, 2)
    w = f16(0.5, 3)
    dot = Sum(context("float16"), tuple(zip(w, f16(0.25, -2))), f16(1)[0])
    assert exact_sum(dot) == Fraction(1, 8) - 6 + 1
    assert exact_sum(total(1, float("inf"))) is None
    view = spread(total(1, float("inf")))
    assert view.exact is None and "exact real sum" not in view.svg
    assert "exact real sum" in spread(SIX).svg


def test_named_orders_are_what_they_say() -> None:
    marks = {mark.name: mark for mark in named_orders(total(2048, 1, 1, 3, how="any"))}
    assert list(marks) == [
        "left to right", "pairwise", "smallest |x| first", "largest |x| first", "numpy.sum, in float32",
    ]  # fmt: skip
    x = np.array([2048, 1, 1, 3], dtype=np.float16)
    assert float(marks["numpy.sum, in float32"].value) == float(x.sum())
    assert not marks["numpy.sum, in float32"].allowed  # another accumulator
    assert all(mark.allowed for name, mark in marks.items() if "numpy" not in name)
    in_place = {mark.name: mark.allowed for mark in named_orders(total(2048, 1, 3, 1))}
    assert in_place["left to right"] and not in_place["largest |x| first"] | in_place["smallest |x| first"]
    wide = {mark.name: mark for mark in named_orders(total(2048, 1, 1, 3, accumulator="float32"))}
    assert wide["pairwise (numpy.sum)"].allowed


def test_named_orders_of_a_dot_product_fuse_as_it_does() -> None:
    x = f16(1, 2, 3)
    for bias, names in (("last", 4), ("first", 2)):
        problem = Sum(context("float16"), tuple(zip(x, x)), f16(1)[0], execution("any", "always", bias=bias))
        marks = list(named_orders(problem))
        assert len(marks) == names and all(mark.allowed for mark in marks)


def test_the_sample_is_of_reachable_results() -> None:
    drawn = list(sample(SIX, 50))
    assert len(drawn) == 50 and set(drawn) <= set(reachable(SIX))
    assert drawn == list(sample(SIX, 50)) and drawn != list(sample(SIX, 50, seed=1))
    view = spread(SIX, samples=50)
    assert sum(view.bars(view.span, 7)) == 50
    assert "a sample: 50 random schedules" in str(view) and "of 50 random schedules" in view.svg
    assert not of_class(spread(SIX, samples=0), "sample")
    assert len(list(sample(total(*[1] * 1000), 1000))) == 50  # a budget of additions


def test_extremes_say_that_the_middle_is_not_known() -> None:
    view = spread(extremes(SIX))
    known = spread(SIX)
    assert (view.low, view.high, view.outcomes) == (known.low, known.high, ())
    assert view.heading == f"exact extremes: from {view.low} to {view.high}; what is between is not known"
    assert of_class(view, "exact-extremes") and len(of_class(view, "tick")) == 2
    assert "[====" in str(view)


def test_a_bracket_tells_bounded_from_reached() -> None:
    rng = np.random.default_rng(0)
    found = bracket(PackedSum.of(context("float16"), rng.standard_normal(60).astype(np.float16).astype(float)))
    view = spread(found, samples=20)
    low, high = view.reached
    assert low is not None and high is not None and view.low is not None and view.high is not None
    assert view.heading == f"a bracket: every result is in [{view.low}, {view.high}]; reached [{low}, {high}]"
    (bounds,), (reached,) = of_class(view, "bounds"), of_class(view, "reached")
    ends = [float(line.get(x) or 0) for line in (bounds, reached, reached, bounds) for x in ("x1", "x2")]
    assert ends[0] <= ends[2] < ends[3] <= ends[1]
    axis = next(line for line in view.lines(100) if line.startswith("  results"))
    assert re.fullmatch(r" +results +\(\.*\[=+\]\.*\)", axis)


def test_infinities_and_nan() -> None:
    view = spread(total(32000, 32000, 32000, -32000, -32000, -32000, how="any"))
    assert view.heading.endswith("from -inf to inf, and NaN")
    axis = next(line for line in view.lines(100) if line.startswith("  results"))
    assert "<" in axis and ">" in axis and "|" in axis
    assert ElementTree.fromstring(view.svg).findall(f"{SVG}path")
    assert "not finite" in view.sample_label
    nothing = spread(total(float("nan"), 1))
    assert nothing.heading == "every result: nan only" and "NaN only" in nothing.svg
    assert nothing.lines(80)


def test_one_result_and_wide_numbers() -> None:
    assert spread(total(1)).heading == "every result: 1.0 only"
    wide = context("ieee(15,64)")
    terms = tuple(exactly(wide.format, Fraction(2) ** e) for e in (5000, 4936, 4936))
    view = spread(Sum(wide, terms))
    assert view.kind == "every result" and len(view.outcomes) == 2
    assert ElementTree.fromstring(view.svg) is not None and view.lines(60)


@pytest.mark.parametrize("width", [20, 60, 80, 100, 300])
def test_lines_keep_to_the_width(width: int) -> None:
    lines = spread(SIX).lines(width)
    assert width < 60 or max(len(line) for line in lines[1:]) <= width


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="not refuted"):
        spread(decide(SumInvariant(SIX)))
    box = BoxSum(context("float16"), (Box(*f16(0, 1)), f16(1)[0]))
    with pytest.raises(UsageError, match="terms in boxes"):
        spread(extremes(box))
