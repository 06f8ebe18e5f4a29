"""Engines for exact algebra: expand; else look for small numbers at which the claim fails."""

from __future__ import annotations

import random
from fractions import Fraction

from fpsmt import kernel
from fpsmt.claims.absorption import Absorbed
from fpsmt.claims.identities import Identity, Nonnegative
from fpsmt.engines.engine import Options, engine
from fpsmt.kernel import Proved, Unknown, Verdict

TRIES = 1000


@engine("exact algebra", Identity)
def exact_algebra(claim: Identity, options: Options) -> Verdict:
    """By expansion; values at which the sides differ are found at random."""
    verdict = kernel.apply("exact algebra", claim)
    return verdict if isinstance(verdict, Proved) else _search(claim, options)


@engine("small numbers", Nonnegative)
def small_numbers(claim: Nonnegative, options: Options) -> Verdict:
    """Looks for a counterexample; a proof needs a certificate (rule ``certificate of positivity``)."""
    return _search(claim, options)


def _search(claim: Identity | Nonnegative, options: Options) -> Verdict:
    rng = random.Random(options.seed)
    for _ in range(TRIES):
        values = {name: str(Fraction(rng.randint(-12, 12), rng.randint(1, 6))) for name in claim.symbols}
        if claim.replay({"values": values}).violates:
            return kernel.refute(claim, {"values": values})
    return Unknown(claim, f"{TRIES} sets of small numbers show nothing", 0.0, "give a certificate")


@engine("coefficients", Absorbed)
def coefficients(claim: Absorbed, options: Options) -> Verdict:
    """New coefficients where there are some; else one kink that none of them makes."""
    verdict = kernel.apply("input absorbed by coefficients", claim)
    if isinstance(verdict, Proved):
        return verdict
    m, n = claim.type
    kink = {"a": ["1", *["0"] * m], "b": ["1", *["0"] * (n - 1)], "scale": "1", "shift": "1"}
    return kernel.refute(claim, kink) if claim.replay(kink).violates else verdict
