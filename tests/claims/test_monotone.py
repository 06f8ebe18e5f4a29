"""Outputs of an implementation that promises to be monotone: accepted only if such an implementation exists."""

from __future__ import annotations

import pytest

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context, float8_e4m3, from_ordinal
from fpsmt.functions import implementation_named
from fpsmt.networks.monotone import check_continuable, check_monotone

FMT = float8_e4m3
LINE = [from_ordinal(FMT, o) for o in range(-FMT.largest_code - 1, FMT.largest_code + 2)]


def continuable(text: str, mode: str) -> tuple[dict[Float, tuple[int, int]], list[tuple[Float, Float]]]:
    """For each input the outputs (as places) that a rising function within the contract can take there."""
    use, ctx = implementation_named(text), context(f"float8_e4m3:{mode}")
    ends = [tuple(y.ordinal for y in use.allowed(ctx, x)) for x in LINE]
    low = [max(a for a, _ in ends[: k + 1]) for k in range(len(LINE))]
    high = [min(b for _, b in ends[k:]) for k in range(len(LINE))]
    real = dict(zip(LINE, zip(low, high)))
    every = [(x, from_ordinal(FMT, o)) for x, (a, b) in zip(LINE, ends) for o in range(a, b + 1)]
    return real, every


@pytest.mark.parametrize("mode", ["RNE", "RTZ", "RTP"])
@pytest.mark.parametrize(
    "name",
    ["tanh:ulps=3", "sigmoid:ulps=2", "exp:ulps=5/2", "identity:ulps=4", "softplus:ulps=1", "tanh:floats=2",
     "sigmoid:error=0.1", "tanh:ulps=3:range=-3/4..3/4", "tanh:floats=2:range=-1/2..1/2"],
)  # fmt: skip
def test_what_is_accepted_can_be_continued(name: str, mode: str) -> None:
    use, ctx = implementation_named(f"{name}:monotone"), context(f"float8_e4m3:{mode}")
    real, every = continuable(name, mode)
    accepted = 0
    for x, y in every:
        try:
            check_continuable(use, ctx, [(x, y)])
        except Unsupported:
            continue
        accepted += 1
        low, high = real[x]
        assert low <= y.ordinal <= high, f"{name} at {x} cannot be {y} and rise"
    assert accepted > len(every) / 2


def test_a_step_back_at_a_power_of_two_is_declined() -> None:
    """Two ulps below 1 are four of the smaller ulps below it, of which only two are allowed just below 1."""
    ctx = context("float8_e4m3")
    one = from_ordinal(FMT, 0x38)
    two = implementation_named("identity:ulps=2:monotone")
    low = two.allowed(ctx, one)[0]
    assert low.ordinal == one.ordinal - 4 and two.allowed(ctx, one.next_down)[0].ordinal == one.ordinal - 3
    with pytest.raises(Unsupported, match="is not known"):
        check_continuable(two, ctx, [(one, low)])
    check_continuable(two, ctx, [(one, low.next_up.next_up)])
    check_continuable(two, ctx, [(one, one)])


def test_falling_outputs() -> None:
    use = implementation_named("tanh:floats=2:monotone")
    one = from_ordinal(FMT, 0x38)
    check_monotone(use, [(one, one), (one.next_up, one)])
    with pytest.raises(UsageError, match="promises to be monotone"):
        check_monotone(use, [(one, one), (one.next_up, one.next_down)])
