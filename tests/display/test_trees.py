"""Trees as text and as SVG, and views of outcomes."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest

from fpsmt.claims import SumInvariant
from fpsmt.display.outcomes import show_outcomes
from fpsmt.display.trees import fraction_text, nodes, side_by_side, tree_lines, tree_svg
from fpsmt.engines import decide
from fpsmt.engines.sums import outcomes
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float16, float32, pow2
from fpsmt.networks import execution
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import left_fold

SVG = "{http://www.w3.org/2000/svg}"


def f16(*values: float) -> tuple[Float, ...]:
    return tuple(exactly(float16, v) for v in values)


THREE = Sum(context("float16"), f16(2048, 1, 1))
OVERFLOWS = Sum(context("float16"), f16(32000, 32000, 32000, -float("inf")))


def test_kinds_of_nodes() -> None:
    kinds = [node.kind for node in nodes(OVERFLOWS, left_fold(range(4)))]
    assert kinds == ["exact", "exact", "exact", "exact", "overflow", "special", "invalid"]
    assert [node.kind for node in nodes(THREE, ((0, 1), 2))] == ["exact", "exact", "inexact", "exact", "inexact"]
    assert [node.error for node in nodes(THREE, ((0, 1), 2))][-1] == -1


def test_saturation_is_overflow() -> None:
    problem = Sum(context("float16:saturate"), f16(65504, 65504))
    root = nodes(problem, (0, 1))[-1]
    assert (root.kind, root.error) == ("overflow", Fraction(-65504))


def test_products_and_casts() -> None:
    w = tuple(exactly(float32, v) for v in (1, 1 + 2.0**-13))
    x = tuple(exactly(float32, v) for v in (-(1 + 2.0**-12), 1 + 2.0**-13))
    problem = Sum(context("float32"), tuple(zip(w, x)), None, execution("any", "any", "float64"))
    fused = nodes(problem, ("fma", 1, 0))
    assert fused[0].value is None
    assert (fused[-1].kind, fused[-1].value and fused[-1].value.fraction) == ("exact", pow2(-26))
    lines = tree_lines(problem, ("fma", 1, 0))
    assert lines == [
        "result 1.4901161e-08, the root rounded to float32",
        "fma = 1.4901161193847656e-08",
        "|-- 1.0001221·1.0001221",
        "`-- 1.0·-1.0002441 = -1.000244140625",
    ]


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(-3, 2), "-1.5"),
        (Fraction(1, 3), "~0.333333"),
        (pow2(-2000), "~2^-2000"),
        (pow2(3000), "~2^3000"),
        (pow2(40), "~1.09951e+12"),
    ],
)
def test_fractions(x: Fraction, text: str) -> None:
    assert fraction_text(x) == text


def test_svg() -> None:
    root = ElementTree.fromstring(tree_svg(OVERFLOWS, left_fold(range(4))))
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class")]
    assert [g.get("class") for g in groups].count("overflow") == 1
    assert len(groups) == 7
    assert len(list(root.iter(f"{SVG}line"))) == 6
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert "overflow" in texts
    assert "invalid" in texts
    tips = [g.findtext(f"{SVG}title") for g in groups]
    assert "<float16 64000.0 = 0x1.f4p+15 = 0x7bd0> 0 11110 1111010000" in tips


def test_two_trees() -> None:
    root = ElementTree.fromstring(side_by_side(THREE, ((0, 1), 2), (0, (1, 2))))
    assert root.findtext(f"{SVG}title") == "two summation trees with results 2048.0 and 2050.0"
    assert len([g for g in root.iter(f"{SVG}g") if g.get("class")]) == 10
    assert [t.text for t in root.iter(f"{SVG}text")].count("error -1") == 2


def test_large_trees_are_not_drawn() -> None:
    problem = Sum(context("float16"), f16(*[1] * 100))
    with pytest.raises(UsageError, match="too large to draw"):
        tree_svg(problem, left_fold(range(100)))
    assert tree_lines(problem, left_fold(range(100)), most=5)[-1] == "... 194 more nodes"


def test_view() -> None:
    view = show_outcomes(outcomes(THREE))
    assert view.outcomes == show_outcomes(THREE).outcomes
    assert view.machine_line == "outcomes exact 2 2048.0 2050.0"
    assert str(view).splitlines()[0] == "2 outcomes: 2048.0 + 1.0 + 1.0 in float16, any"
    assert repr(view) == str(view)
    html = view._repr_html_()
    ElementTree.fromstring(html)
    assert html.count("<svg") == 2
    with pytest.raises(UsageError, match="not refuted"):
        show_outcomes(decide(SumInvariant(THREE)))


def test_values_are_all_there_and_replay() -> None:
    view = show_outcomes(OVERFLOWS)
    for value, tree in view.outcomes:
        assert OVERFLOWS.evaluate(tree) == value
