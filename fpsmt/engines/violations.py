"""What a violation of safety is worth: at its input every execution is unsafe, or some; and is real arithmetic?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.claim import Json
from fpsmt.claims.functions import read_value
from fpsmt.claims.properties import Safe
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import to_carrier
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.real_values import real_outputs


@dataclass(frozen=True)
class Violation:
    """At the input of a counterexample: `every` execution is proved to be unsafe (else some are, others may be); the
    network over the reals is unsafe too (`real`); its exact `outputs`, None where they are not known."""

    every: bool
    real: bool
    outputs: tuple[Fraction, ...] | None

    @property
    def violated_by(self) -> str:
        """``every``, ``some``, or ``execution-only``: executions are unsafe where real arithmetic is safe."""
        if self.outputs is not None and not self.real:
            return "execution-only"
        return "every" if self.every else "some"


def violation(claim: Safe, counterexample: Json) -> Violation:
    """Judges the input of a counterexample."""
    x = [read_value(claim.network.input.format, v) for v in counterexample["input"]]
    unsafe = [p for query in claim.safety.queries if query.has_input(x) for p in query.unsafe]
    try:
        outputs = real_outputs(claim.network, x)
    except Unsupported:
        outputs = None
    real = outputs is not None and any(p.holds(outputs) for p in unsafe)
    try:
        found = enclosures(claim.network, to_carrier(x)[None, :], executions=claim.executions)
    except Unsupported:
        return Violation(False, real, outputs)
    low, high = (end[0].tolist() for end in found[claim.network.output.name])
    return Violation(any(p.holds_between(low, high) for p in unsafe), real, outputs)
