"""What a violation of safety is worth: at its input every execution is unsafe, or some; and is real arithmetic?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fpsmt.claims.claim import Json
from fpsmt.claims.functions import read_value
from fpsmt.claims.properties import Polytope, Query, Safe
from fpsmt.floats import Float
from fpsmt.floats.vector import to_carrier
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.relaxation import Relaxation


@dataclass(frozen=True)
class Violation:
    """At the input of a counterexample: `every` execution is proved to be unsafe (else some are, others may be); the
    network over the reals is unsafe too (`real`); its exact `outputs`."""

    every: bool
    real: bool
    outputs: tuple[Fraction, ...]

    @property
    def violated_by(self) -> str:
        """``every``, ``some``, or ``execution-only``: executions are unsafe where real arithmetic is safe."""
        return ("every" if self.every else "some") if self.real else "execution-only"


def violation(claim: Safe, counterexample: Json) -> Violation:
    """Judges the input of a counterexample.  Raises `Unsupported` where `Relaxation` does not read the network."""
    x = [read_value(claim.network.input.format, v) for v in counterexample["input"]]
    queries = [query for query in claim.safety.queries if query.has_input(x)]
    outputs = real_outputs(claim, x)
    real = any(_holds(p, outputs, outputs) for query in queries for p in query.unsafe)
    return Violation(_every(claim, queries, x), real, outputs)


def real_outputs(claim: Safe, x: list[Float]) -> tuple[Fraction, ...]:
    """The outputs over the reals: no rounding, no cast."""
    h = [v.fraction for v in x]
    for step in Relaxation(claim.network, claim.executions).steps:
        b = [Fraction(float(v)) for v in step.b]
        if step.weights is None:
            h = [v + c for v, c in zip(h, b, strict=True)]
        else:
            rows = [[(j, Fraction(float(row[j]))) for j in np.flatnonzero(row).tolist()] for row in step.weights]
            h = [sum((w * h[j] for j, w in row), c) for row, c in zip(rows, b, strict=True)]
        if step.relu:
            h = [max(v, Fraction(0)) for v in h]
    return tuple(h)


def _every(claim: Safe, queries: list[Query], x: list[Float]) -> bool:
    """All outputs between the bounds are in one polytope."""
    point = np.asarray(to_carrier(x), dtype=np.float64)[None]
    low, high = enclosures(claim.network, point, executions=claim.executions)[claim.network.output.name]
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return False
    ends = [tuple(Fraction(float(v)) for v in end[0]) for end in (low, high)]
    return any(_holds(p, ends[0], ends[1]) for query in queries for p in query.unsafe)


def _holds(polytope: Polytope, low: tuple[Fraction, ...], high: tuple[Fraction, ...]) -> bool:
    """Whether all outputs between two ends are in the polytope."""
    for row, limit, strict in zip(polytope.rows, polytope.rhs, polytope.strict, strict=True):
        most = sum((a * (high[j] if a > 0 else low[j]) for j, a in row), Fraction(0))
        if most > limit or (strict and most == limit):
            return False
    return True
