"""What is asked of one element of a gradient or of a value: to be a number, in a range, or of a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fpsmt.errors import UsageError
from fpsmt.floats import Float, zero
from fpsmt.terms import (
    TRUE,
    Term,
    all_of,
    const,
    evaluate,
    is_finite,
    is_infinite,
    is_nan,
    is_zero,
    le,
    lt,
    negation,
    same,
)

KINDS: dict[str, Callable[[Term], Term]] = {
    "any": lambda x: TRUE,
    "zero": is_zero,
    "nonzero": lambda x: negation(is_zero(x)),
    "nan": is_nan,
    "finite": is_finite,
    "infinite": is_infinite,
    "positive": lambda x: lt(const(zero(x.format)), x),
    "negative": lambda x: lt(x, const(zero(x.format))),
}


@dataclass(frozen=True)
class Target:
    """A kind of `KINDS`; or, without one, the numbers from low to high, and where these are one float, that float.

    Zeros: ``zero`` and ranges mean both; one float means itself, +0 or −0.  NaN is in no range, and counts as nonzero.

    >>> from fpsmt.floats import exactly, float16, zero
    >>> one, two = exactly(float16, 1), exactly(float16, 2)
    >>> [Target("", one, two).holds(x) for x in (one, two, -one)], Target("zero").holds(zero(float16, True))
    ([True, True, False], True)
    """

    kind: str
    low: Float | None = None
    high: Float | None = None

    def __post_init__(self) -> None:
        if self.kind and self.kind not in KINDS:
            raise UsageError(f"{self.kind!r} is no target: write a number, LO:HI, or one of {', '.join(KINDS)}")

    def term(self, x: Term) -> Term:
        """x is what is asked for."""
        if self.kind:
            return KINDS[self.kind](x)
        assert self.low is not None and self.high is not None
        if self.low == self.high:
            return same(x, const(self.low))
        return all_of(le(const(self.low), x), le(x, const(self.high)))

    def holds(self, x: Float) -> bool:
        """The same for one float."""
        return bool(evaluate(self.term(const(x)), {}))

    def __str__(self) -> str:
        return self.kind or (str(self.low) if self.low == self.high else f"[{self.low}, {self.high}]")
