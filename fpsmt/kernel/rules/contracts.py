"""Rules about implementations and their contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.contracts import AllowedOutput, MeetsContract
from fpsmt.errors import EvidenceError
from fpsmt.floats import Float, Format, from_ordinal
from fpsmt.floats.vector import decode, embeds, to_floats
from fpsmt.functions import Function, WithinError, WithinUlps, allowed_arrays
from fpsmt.functions.enclosures import place
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.terms.program_errors import distance, least_ulp
from fpsmt.terms.programs import Program, from_places, places

MOST_INPUTS = 1 << 24
BLOCK = 1 << 16


@rule("all inputs exhausted")
def all_inputs(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes what the implementation may return and what the contract allows at every input, and compares the ends.

    Both are intervals on the line of floats (−0 below +0), so that one lies in the other exactly when its ends do; NaN
    is allowed exactly where only NaN is.  For at most `MOST_INPUTS` inputs.
    """
    if not isinstance(claim, MeetsContract):
        raise EvidenceError(f"exhausting the inputs does not speak about {claim.kind}")
    fmt, ctx = claim.inputs, claim.context
    if count_inputs(claim) > MOST_INPUTS or not (embeds(fmt) and embeds(ctx.format)):
        return Open(f"the inputs of {fmt} are too many to try them all")
    inputs = 0
    for x in _blocks(claim):
        inputs += x.size
        if (found := violation(claim, x)) is not None:
            return found
    return Holds({"inputs": inputs}, (VECTOR, BALLS))


def violation(claim: MeetsContract, x: NDArray[Any]) -> Fails | None:
    """The first of these inputs at which a result is not allowed."""
    fmt, ctx = claim.inputs, claim.context
    got = allowed_arrays(claim.implementation, ctx, x, fmt)
    wanted = allowed_arrays(claim.required, ctx, x, fmt)
    nowhere, nothing = np.isnan(got[0]), np.isnan(wanted[0])
    (a, b), (low, high) = ([places(ctx.format, np.where(np.isnan(y), 0.0, y)) for y in p] for p in (got, wanted))
    bad = (nowhere != nothing) | (~nowhere & ((a < low) | (b > high)))
    return Fails({"x": to_floats(fmt, x[int(np.argmax(bad)) :][:1])[0].hex}) if bad.any() else None


def count_inputs(claim: MeetsContract) -> int:
    """How many inputs there are (NaN codes of a whole format counted each)."""
    if claim.low is None or claim.high is None:
        return 1 << claim.inputs.bits
    return place(claim.high) - place(claim.low) + 1


def _blocks(claim: MeetsContract) -> Iterator[NDArray[Any]]:
    """Carriers of all inputs: every code, or every place from low to high, −0 just below +0."""
    fmt = claim.inputs
    if claim.low is None or claim.high is None:
        for at in range(0, 1 << fmt.bits, BLOCK):
            yield decode(fmt, np.arange(at, min(at + BLOCK, 1 << fmt.bits), dtype=np.uint64))
        return
    for at in range(place(claim.low), place(claim.high) + 1, BLOCK):
        yield from_places(fmt, np.arange(at, min(at + BLOCK, place(claim.high) + 1)))


LEAF = 64  #: so few neighbours are tried one by one
MOST_TRIED = 1 << 22


@rule("error analysis")
def error_analysis(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Covers the inputs by intervals; on each, a bound of the program's distance from the function
    (`fpsmt.terms.program_errors`) is at most K times a lower bound of the ulp of its values (or at most the absolute
    error), so that every result is allowed.  An interval without such a bound is halved, on the line of floats; the
    inputs of short ones, and both zeros, are tried one by one, as in `all inputs exhausted`.

    data: intervals, how many may be examined.  For a program in its own context, a contract ``ulps=K`` or ``error=E``,
    inputs between two finite ends.
    """
    if not isinstance(claim, MeetsContract):
        raise EvidenceError(f"an error analysis does not speak about {claim.kind}")
    program, asked, fmt, ctx = claim.implementation.contract, claim.contract, claim.inputs, claim.context
    if not isinstance(program, Program) or program.context not in (None, ctx) or fmt != ctx.format:
        return Open("the error analysis is for programs that run in the context of their inputs and results")
    if not isinstance(asked, WithinUlps | WithinError) or not embeds(fmt):
        return Open("the error analysis is for contracts of ulps or an absolute error")
    if claim.low is None or claim.high is None or not (claim.low.is_finite and claim.high.is_finite):
        return Open("the error analysis needs a finite interval of inputs")
    term, function = program.compiled(ctx, fmt).term, claim.implementation.function
    zeros = [np.array([-1, 0])] * (claim.low.ordinal <= 0 <= claim.high.ordinal)  # an end may be either of them
    todo, tried, short = _around_zero(claim.low, claim.high), 0, zeros
    examined = waiting = 0
    while todo or short:
        if not todo or waiting > BLOCK:
            x = from_places(fmt, np.concatenate(short))
            x = x[[claim.covers(v) for v in to_floats(fmt, x)]] if np.any(x == 0) else x
            if (found := violation(claim, x)) is not None:
                return found
            tried, waiting, short = tried + x.size, 0, []
            if tried > MOST_TRIED:
                return Open(f"more than {MOST_TRIED:,} inputs had to be tried one by one, the last near {x[-1]!r}")
            continue
        first, last = todo.pop()
        if last - first < LEAF:
            places_ = np.arange(first, last + 1)
            short.append(np.where(places_ < 0, places_ - 1, places_))
            waiting += places_.size
            continue
        low, high = from_ordinal(fmt, first), from_ordinal(fmt, last)
        examined += 1
        if examined > int(data["intervals"]):
            return Open(f"{examined - 1:,} intervals were not enough, the last near {low}")
        far = distance(term, function, ctx, low, high)
        if far is not None and far <= _room(asked, function, fmt, low, high):
            continue
        middle = (first + last) // 2
        todo += [(first, middle), (middle + 1, last)]
    return Holds({"intervals": examined, "tried": tried}, (VECTOR, BALLS))


def _around_zero(low: Float, high: Float) -> list[tuple[int, int]]:
    """The ordinals from low to high without 0, in one or two intervals."""
    parts = [(low.ordinal, min(high.ordinal, -1)), (max(low.ordinal, 1), high.ordinal)]
    return [(a, b) for a, b in parts if a <= b]


def _room(asked: WithinUlps | WithinError, function: Function, fmt: Format, low: Float, high: Float) -> Fraction:
    return asked.error if isinstance(asked, WithinError) else asked.ulps * least_ulp(function, fmt, low, high)


@rule("one output")
def one_output(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes by reference what is allowed at the input, and compares the output with its least and greatest value."""
    if not isinstance(claim, AllowedOutput):
        raise EvidenceError(f"one output does not speak about {claim.kind}")
    return Fails({}) if claim.replay({}).violates else Holds({}, (BALLS,))
