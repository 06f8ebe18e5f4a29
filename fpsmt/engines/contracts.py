"""Engines for contracts: error analysis of a program on intervals of inputs; every input, where they are few enough."""

from __future__ import annotations

import numpy as np

from fpsmt import kernel
from fpsmt.claims.contracts import AllowedOutput, MeetsContract
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import embeds, from_ordinals
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.contracts import MOST_INPUTS, count_inputs, violation

FEW_INPUTS = 1 << 17
TRIED = 1 << 13  #: inputs of each kind in the search


@engine("one output", AllowedOutput)
def one_output(claim: AllowedOutput, options: Options) -> Verdict:
    """By reference arithmetic."""
    return kernel.apply("one output", claim)


INTERVALS_PER_SECOND = 200


@engine("some inputs", MeetsContract)
def some_inputs(claim: MeetsContract, options: Options) -> Verdict:
    """Looks for a result that is not allowed, at inputs spread over the line of floats and chosen at random."""
    if count_inputs(claim) <= FEW_INPUTS or not embeds(claim.inputs):
        raise Unsupported("the inputs are few: they can all be tried")
    top = claim.inputs.largest_code
    first = -top if claim.low is None else max(-top, claim.low.ordinal)
    last = top if claim.high is None else min(top, claim.high.ordinal)
    rng = np.random.default_rng(options.seed)
    places = np.concatenate([np.linspace(first, last, TRIED).astype(np.int64), rng.integers(first, last + 1, TRIED)])
    found = violation(claim, from_ordinals(claim.inputs, places))
    if found is not None:
        return kernel.refute(claim, found.counterexample)
    return Unknown(claim, f"{2 * TRIED:,} inputs meet the contract")


@engine("error analysis", MeetsContract)
def error_analysis(claim: MeetsContract, options: Options) -> Verdict:
    """Programs on intervals of inputs that are too many to be tried."""
    if count_inputs(claim) <= FEW_INPUTS:
        raise Unsupported("the inputs are few: they can all be tried")
    options.report(f"error analysis of {claim.implementation.text[:80]}")
    return kernel.apply("error analysis", claim, {"intervals": max(1000, int(options.timeout * INTERVALS_PER_SECOND))})


@engine("all inputs", MeetsContract)
def all_inputs(claim: MeetsContract, options: Options) -> Verdict:
    """At most 2^24 inputs: formats of at most 16 bits, or a part of the line of floats."""
    count = count_inputs(claim)
    if count > MOST_INPUTS:
        raise Unsupported(f"{count:,} inputs are too many to try them all (at most {MOST_INPUTS:,}): ask for a part")
    options.report(f"all {count:,} inputs")
    return kernel.apply("all inputs exhausted", claim)
