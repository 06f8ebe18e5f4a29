"""Witnesses of Conditions 2 and 3 of arXiv 2605.01702: checked, and looked for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeVar

from fpsmt import kernel
from fpsmt.claims.gradient_conditions import Condition, GradientCondition2, GradientCondition3, log2
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, exactly, pow2, zero
from fpsmt.functions import Function, correctly_rounded
from fpsmt.kernel import Verdict

C = TypeVar("C", GradientCondition2, GradientCondition3)


@engine("gradient condition", GradientCondition2, GradientCondition3)
def gradient_condition(claim: Condition, options: Options) -> Verdict:
    """Computes the requirements."""
    return kernel.apply("gradient condition", claim)


def points(ctx: Context) -> list[Float]:
    """0, ±powers of two and a few numbers where activations saturate."""
    fmt = ctx.format
    powers = [s * pow2(e) for e in range(max(fmt.emin, -14), min(fmt.emax - 2, 7)) for s in (1, -1)]
    others = [Fraction(s * v) for v in (3, 5, 6, 10, 12, 20) for s in (-1, 1)]
    return [zero(fmt), *(exactly(fmt, v) for v in (*powers, *others) if _fits(ctx, v))]


def _fits(ctx: Context, v: Fraction) -> bool:
    try:
        exactly(ctx.format, v)
    except UsageError:
        return False
    return True


def find_condition_2(function: Function, ctx: Context) -> GradientCondition2 | None:
    """A witness of Condition 2 among a few candidates, None where none of them is one.

    η₀, η₁, η₂ = 1, −k, k are the least that the third requirement allows.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import relu, step
    >>> find_condition_2(relu, context("float16")).holds, find_condition_2(step, context("float16"))
    (True, None)
    """
    slopes = {x: abs(d.fraction) for x in points(ctx) if (d := _slope(function, ctx, x)).is_finite}
    for b, steep in slopes.items():
        k = log2(steep)
        if k is None or not -ctx.format.fraction_bits <= k <= 0:
            continue
        flat = (a for a, slope in slopes.items() if 2 * slope <= steep)
        found = next(_holding(GradientCondition2(function, ctx, a, b, (1, -k, k)) for a in flat), None)
        if found is not None:
            return found
    return None


def _slope(function: Function, ctx: Context, x: Float) -> Float:
    return correctly_rounded(function.derivative, ctx, x)


def find_condition_3(function: Function, ctx: Context) -> GradientCondition3 | None:
    """A witness of Condition 3: the second route, else the first.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import relu
    >>> find_condition_3(relu, context("float8_e4m3")).text
    'Condition 3 (arXiv 2605.01702) of relu in float8_e4m3: ζ = 0.015625, x = 0.015625'
    """
    zetas = [z for z in points(ctx) if not z.is_zero and not z.negative]
    steep = [x for x in points(ctx) if (d := _slope(function, ctx, x)).is_finite and not d.is_zero]
    return next(_holding(GradientCondition3(function, ctx, z, x) for x in steep for z in zetas), None)


def _holding(claims: Iterator[C]) -> Iterator[C]:
    for claim in claims:
        try:
            if claim.holds:
                yield claim
        except (Unsupported, UsageError):
            continue
