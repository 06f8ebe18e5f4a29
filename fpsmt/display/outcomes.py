"""The outcomes of a sum for people: a table and trees, in a terminal and in a notebook."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from fpsmt.display.tables import cut, text_table
from fpsmt.display.trees import MAX_LEAVES, side_by_side, side_by_side_lines, tree_lines, tree_svg
from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import Tree, tree_from_json, tree_text

if TYPE_CHECKING:
    from fpsmt.kernel import Verdict

FEW = 4  #: outcomes whose trees are shown unasked
SCHEDULE_WIDTH = 60
SHORT_TREE = 60  #: lines of a tree that is shown unasked


def machine_word(value: Float) -> str:
    """A word that Python's ``float`` reads as exactly this value, else a hex float.

    >>> from fpsmt.floats import exactly, ieee, pow2
    >>> [machine_word(exactly(ieee(15, 64), pow2(e))) for e in (-26, -5000, 5000)]
    ['1.4901161193847656e-08', '0x1p-5000', '0x1p+5000']
    """
    x = float(value)
    if value.is_finite and not value.is_zero and (math.isinf(x) or Fraction(x) != value.fraction):
        return value.hex
    return repr(x)


@dataclass(frozen=True)
class OutcomesView:
    """Every reachable result of a sum, each with one schedule."""

    problem: Sum
    outcomes: tuple[tuple[Float, Tree], ...]

    @property
    def values(self) -> tuple[Float, ...]:
        return tuple(value for value, _ in self.outcomes)

    @property
    def far_apart(self) -> tuple[int, int] | None:
        """Where the least and the greatest outcome are; NaN stands for a missing one; None of a single outcome."""
        if len(self.outcomes) < 2:
            return None
        last = len(self.outcomes) - 1
        return 0, last - (last > 1 and self.outcomes[last][0].is_nan)

    @property
    def machine_line(self) -> str:
        """``outcomes exact N v1 v2 …``, ascending, NaN last; Python's ``float`` reads the values exactly (hex floats
        where they are not float64 values)."""
        return " ".join(["outcomes", "exact", str(len(self.outcomes)), *map(machine_word, self.values)])

    def table(self) -> list[str]:
        """Decimal, hex float, bits and schedule of each outcome."""
        rows = [
            [value.decimal, value.hex, value.bits, value.bit_string, cut(tree_text(tree), SCHEDULE_WIDTH)]
            for value, tree in self.outcomes
        ]
        return text_table(["value", "hex", "bits", "sign exponent fraction", "schedule"], rows)

    def trees(self, most: int = SHORT_TREE) -> list[str]:
        """One tree for each outcome, with the value at each node, at most `most` lines each: those of the least and the
        greatest outcome side by side where the terminal is wide, with the nodes where they part."""
        lines: list[str] = []
        pair = self.far_apart
        if pair is not None:
            least, greatest = (self.outcomes[k][1] for k in pair)
            lines += ["", *side_by_side_lines(self.problem, least, greatest, most)]
        for k, (value, tree) in enumerate(self.outcomes):
            if k not in (pair or ()):
                lines += ["", f"{value.decimal}:", *("  " + line for line in tree_lines(self.problem, tree, most))]
        return lines

    def __str__(self) -> str:
        count = "1 outcome" if len(self.outcomes) == 1 else f"{len(self.outcomes)} outcomes"
        lines = [f"{count}: {self.problem.text}", *self.table()]
        if len(self.outcomes) <= FEW:
            lines += self.trees()
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        few = len(self.outcomes) <= FEW
        pair = self.far_apart or ()
        rows = []
        for k, (value, tree) in enumerate(self.outcomes):
            cells = [value.decimal, value.hex, value.bits, cut(tree_text(tree), SCHEDULE_WIDTH)]
            row = "".join(f'<td style="text-align:left"><code>{escape(cell)}</code></td>' for cell in cells)
            rows.append(f"<tr>{row}</tr>")
            if few and k not in pair and self.problem.n < MAX_LEAVES:
                rows.append(_wide_row(tree_svg(self.problem, tree)))
        if few and pair:
            rows.append(_wide_row("the least and the greatest, and where they part:"))
            rows.append(_wide_row(side_by_side(self.problem, *(self.outcomes[k][1] for k in pair))))
        head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("value", "hex", "bits", "schedule"))
        count = "1 outcome" if len(self.outcomes) == 1 else f"{len(self.outcomes)} outcomes"
        return (
            f"<div><b>{count}</b> {escape(self.problem.text)}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )


def _wide_row(html: str) -> str:
    return f'<tr><td colspan="4" style="text-align:left">{html}</td></tr>'


def show_outcomes(proved: Verdict | Sum) -> OutcomesView:
    """A table with trees of a proved set of outcomes (`engines.sums.outcomes`), or of a sum's (computed now).

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> view = show_outcomes(Sum(context("float16"), ones))
    >>> view.machine_line
    'outcomes exact 2 2048.0 2050.0'
    >>> str(view).splitlines()[0]
    '2 outcomes: 2048.0 + 1.0 + 1.0 in float16, any'
    """
    if isinstance(proved, Sum):
        from fpsmt.networks.outcomes import reachable

        return OutcomesView(proved, tuple(reachable(proved).items()))
    from fpsmt.claims.sums import SumOutcomes
    from fpsmt.kernel import Proved

    claim = proved.claim
    if not isinstance(proved, Proved) or not isinstance(claim, SumOutcomes):
        raise UsageError(f"show_outcomes shows a proved set of outcomes, not {proved.name}: {claim.text}")
    schedules = proved.evidence.found["schedules"]
    n = claim.problem.n + (claim.problem.bias is not None)
    found = tuple((value, tree_from_json(schedules[value.hex], n)) for value in claim.outcomes)
    return OutcomesView(claim.problem, found)
