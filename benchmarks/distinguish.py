"""Telling inputs apart: refinement of all pairs against one SMT query for one pair, and inexact activations."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.measure import Row, Rows, benchmark, compare, seconds
from benchmarks.separation import ACTIVATIONS, one_pair, prove
from fpsmt.claims import Distinguishable, Reading, Setting
from fpsmt.floats import Format, bfloat16, context, float16, largest
from fpsmt.functions import Contract, CorrectlyRounded, WithinUlps, function_named


def _claim(name: str, fmt: Format, reading: Reading, contract: Contract) -> Distinguishable:
    return Distinguishable(
        Setting(function_named(name), context(fmt), largest(fmt, True), largest(fmt), reading, contract)
    )


@benchmark("distinguish")
def distinguish() -> Rows:
    """All pairs of a 16-bit format: correctly rounded (finite on the pair), and within 10 ulps."""
    for fmt in (float16, bfloat16):
        inputs = 2 * largest(fmt).ordinal + 1
        claims = [_claim(name, fmt, Reading.FINITE_ON_PAIR, CorrectlyRounded()) for name in ACTIVATIONS[4:8]]
        taken = sum(seconds(prove, claim) for claim in claims)
        pairs = len(claims) * inputs * (inputs - 1) // 2
        peer = compare("z3, one pair of relu, times pairs", lambda f, n: one_pair(f) * n, fmt, pairs)
        yield Row(f"all {pairs:.1e} pairs of {fmt}, four activations", taken, peer=peer)
    taken = seconds(prove, _claim("tanh", bfloat16, Reading.ANY, WithinUlps(Fraction(10))))
    yield Row("all pairs of bfloat16, tanh within 10 ulps", taken)
