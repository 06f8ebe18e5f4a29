"""Trees as text and as SVG, and views of outcomes."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest

from fpsmt.claims import SumInvariant
from fpsmt.display.outcomes import show_outcomes
from fpsmt.display.outline import NEAR, fraction_text, nodes, path
from fpsmt.display.trees import MARK, side_by_side, side_by_side_lines, tree_lines, tree_svg
from fpsmt.engines import decide
from fpsmt.engines.sums import outcomes
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float16, float32, pow2
from fpsmt.networks import execution
from fpsmt.networks.orders import PAIRWISE
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import left_fold, partings

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
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert texts.count("error -1") == 2
    assert "violet: where the two trees part" in texts
    marked = [g for g in root.iter(f"{SVG}g") if "parting" in (g.get("class") or "")]
    assert [(g.get("class"), g.findtext(f"{SVG}text")) for g in marked] == [
        ("inexact parting", "2048.0"), ("exact parting", "2.0"),
    ]  # fmt: skip


def test_two_columns_or_one_below_the_other() -> None:
    wide = side_by_side_lines(THREE, ((0, 1), 2), (0, (1, 2)), width=200)
    narrow = side_by_side_lines(THREE, ((0, 1), 2), (0, (1, 2)), width=60)
    assert len(wide) == 6 and len(narrow) == 13
    assert narrow == [
        "2048.0:",
        "  + = 2048.0   (error -1, -0.5 ulp)",
        f"  |-- + = 2048.0   (error -1, -0.5 ulp)   {MARK}",
        "  |   |-- 2048.0",
        "  |   `-- 1.0",
        "  `-- 1.0",
        "",
        "2050.0:",
        "  + = 2050.0",
        "  |-- 2048.0",
        f"  `-- + = 2.0   {MARK}",
        "      |-- 1.0",
        "      `-- 1.0",
    ]
    exactly_wide = max(map(len, wide))
    assert side_by_side_lines(THREE, ((0, 1), 2), (0, (1, 2)), width=exactly_wide) == wide
    assert side_by_side_lines(THREE, ((0, 1), 2), (0, (1, 2)), width=exactly_wide - 1) == narrow


def test_one_tree_written_in_two_ways() -> None:
    lines = side_by_side_lines(THREE, ((0, 1), 2), (2, (1, 0)), width=200)
    assert not any(MARK in line for line in lines)
    assert "the same tree, up to commuting" in side_by_side(THREE, ((0, 1), 2), (2, (1, 0)))


def test_fused_nodes_part() -> None:
    x = f16(1, 1.0009765625)
    dot = Sum(context("float16"), tuple(zip(x, x)), None, execution("any", "any"))
    lines = side_by_side_lines(dot, ("fma", 1, 0), ("fma", 0, 1), width=200)
    assert lines[1].count(MARK) == 2 and lines[1].startswith("  fma = ")


def test_large_trees_show_a_path() -> None:
    n = 300
    problem = Sum(context("float16"), f16(*[1 + k % 3 for k in range(n)]))
    left, right = left_fold(range(n)), PAIRWISE.default_tree(n)
    lines = side_by_side_lines(problem, left, right, width=1000)
    text = "\n".join(lines)
    assert len(lines) < 40 and text.count(MARK) == 2
    assert f"... {n - 1 - 2 * NEAR - 1} nodes ..." in text
    assert "(the path to the node where they part)" in text
    root = ElementTree.fromstring(side_by_side(problem, left, right))
    assert len([g for g in root.iter(f"{SVG}g") if "parting" in (g.get("class") or "")]) == 2
    cut = [g.findtext(f"{SVG}title") or "" for g in root.iter(f"{SVG}g") if g.get("class") == "cut"]
    assert any("a subtree of" in tip for tip in cut) and any("nodes of the path are left out" in tip for tip in cut)


def test_large_trees_are_whole_when_asked_for() -> None:
    n = 300
    problem = Sum(context("float16"), f16(*[1] * n))
    lines = side_by_side_lines(problem, left_fold(range(n)), left_fold(range(n)[::-1]), most=10**6, width=80)
    assert len(lines) == 2 * (2 * n - 1) + 3


@pytest.mark.parametrize("n", range(2, 16))
def test_a_path_accounts_for_every_term(n: int) -> None:
    """Leaves, cut subtrees and one term for each node left out of a running sum are all the terms."""
    problem = Sum(context("float16"), f16(*[1] * n))
    tree = left_fold(range(n))
    marks, _ = partings(tree, left_fold(range(n)[::-1]))
    items = path(nodes(problem, tree), marks or [2])
    counted = sum(item.cut or 1 for item in items if not item.children)
    counted += sum(item.cut for item in items if item.node is None)
    assert counted == n
    assert all(child < k for k, item in enumerate(items) for child in item.children)


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
    assert html.count("<svg") == 1
    assert html.count(" parting") == 2
    with pytest.raises(UsageError, match="not refuted"):
        show_outcomes(decide(SumInvariant(THREE)))


def test_least_and_greatest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    four = show_outcomes(Sum(context("float16"), f16(*[32000] * 4, *[-32000] * 4)))
    assert [str(four.values[k]) for k in four.far_apart or ()] == ["-inf", "inf"]
    lines = four.trees()
    assert [line for line in lines if line.endswith(":")] == ["-inf:", "inf:", "0.0:", "nan:"]
    assert four._repr_html_().count("<svg") == 3
    assert show_outcomes(Sum(context("float16"), f16(1, 2))).far_apart is None
    nan = show_outcomes(Sum(context("float16"), f16(40000, 40000, -float("inf"))))
    assert [str(v) for v in nan.values] == ["-inf", "nan"] and nan.far_apart == (0, 1)


def test_values_are_all_there_and_replay() -> None:
    view = show_outcomes(OVERFLOWS)
    for value, tree in view.outcomes:
        assert OVERFLOWS.evaluate(tree) == value
