"""Condition 1 of arXiv 2506.16065 (interval universal approximation in floats), as a claim of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, all_values, context, pow2
from fpsmt.functions import CorrectlyRounded, Implementation, correctly_rounded, implementation_from_json

MOST_BITS = 16  #: of a format whose values are tried one by one


@claim_kind
@dataclass(frozen=True)
class IntervalCondition(Claim):
    """Condition 1 of arXiv 2506.16065 for a correctly rounded activation σ: F → F.

    With ε = 2^−p, p = precision − 1, there are c₁, c₂, η ∈ F and λ ∈ ℝ with

    1. σ(c₁) = 0; |σ(c₂)| ∈ [ε/2 + 2ε², 5/4 − 2ε]; max(|c₁|, |c₂|) ≥ 2^(emin+1); σ(x) between σ(c₁) and σ(c₂) for all x
       between c₁ and c₂;
    2. |η| ∈ [2^(emin+5), 4 − 8ε]; |σ(η)|, |σ(η⁺)| ∈ [2^(emin+5), 2^(emax−6)·|η|]; for all x ≤ η < η⁺ ≤ y:
       σ(x) ≤ σ(η) < σ(η⁺) ≤ σ(y), or all reversed;
    3. 0 ≤ λ ≤ 2^(emax−7)·min(|σ(η)|, 2^(p+3)); |σ(x) − σ(η)| ≤ λ·|x − η| for x ≤ η, |σ(y) − σ(η⁺)| ≤ λ·|y − η⁺| for
       y ≥ η⁺.

    x and y range over the finite floats, where σ must be finite.
    """

    kind = "interval-condition"
    implementation: Implementation
    context: Context

    def __post_init__(self) -> None:
        if not isinstance(self.implementation.contract, CorrectlyRounded):
            raise UsageError("the condition is about correctly rounded activations")

    @property
    def text(self) -> str:
        return (
            "∃ c₁, c₂, η, λ: σ(c₁) = 0, |σ(c₂)| near 1, σ steps from η to η⁺ for good and is λ-Lipschitz on both sides "
            f"(Condition 1 of arXiv 2506.16065); σ = {self.implementation.text} in {self.context}"
        )

    def fields(self) -> dict[str, Json]:
        return {"implementation": self.implementation.to_json(), "context": str(self.context)}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> IntervalCondition:
        return cls(implementation_from_json(data["implementation"]), context(data["context"]))

    # -- the parts ----------------------------------------------------------------------------------------------

    def output(self, x: Float) -> Float:
        """σ(x)."""
        return correctly_rounded(self.implementation.function, self.context, x)

    def constants(self, c1: Float, c2: Float) -> bool:
        """Part 1, but for what lies between."""
        fmt, eps = self.context.format, pow2(-self.context.format.fraction_bits)
        y, z = self.output(c1), self.output(c2)
        large = max(abs(c1.fraction), abs(c2.fraction)) >= pow2(fmt.emin + 1)
        if not (y.is_zero and z.is_finite and large):
            return False
        return eps / 2 + 2 * eps**2 <= abs(z.fraction) <= Fraction(5, 4) - 2 * eps

    def sizes(self, eta: Float) -> bool:
        """Part 2, but for what lies beyond η and η⁺."""
        fmt = self.context.format
        size = abs(eta.fraction)
        if not pow2(fmt.emin + 5) <= size <= 4 - 8 * pow2(-fmt.fraction_bits):
            return False
        ends = self.output(eta), self.output(eta.next_up)
        if not all(y.is_finite and pow2(fmt.emin + 5) <= abs(y.fraction) <= pow2(fmt.emax - 6) * size for y in ends):
            return False
        return ends[0].fraction != ends[1].fraction

    def steepest(self, eta: Float) -> Fraction:
        """The largest λ allowed."""
        fmt = self.context.format
        return pow2(fmt.emax - 7) * min(abs(self.output(eta).fraction), pow2(fmt.fraction_bits + 3))

    # -- one by one ---------------------------------------------------------------------------------------------

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}, in a format of at most 16 bits: tries every c₁, c₂ and η by reference."""
        fmt = self.context.format
        if fmt.bits > MOST_BITS:
            raise UsageError(f"the values of {fmt} are too many to try: the limit is {MOST_BITS} bits")
        points = [x for x in all_values(fmt, finite=True) if not (x.is_zero and x.negative)]
        outputs = [self.output(x) for x in points]
        if not all(y.is_finite for y in outputs):
            at = next(x for x, y in zip(points, outputs) if not y.is_finite)
            return Replay(True, (f"σ({at}) = {self.output(at)} is not finite",))
        values = [y.fraction for y in outputs]
        constants = next(self._constants(points, values), None)
        eta = next(self._steps(points, values), None)
        lines = [f"c₁, c₂: {constants[0]}, {constants[1]}" if constants else "no c₁, c₂"]
        lines.append(f"η: {eta}" if eta else "no η")
        return Replay(constants is None or eta is None, tuple(lines))

    def _constants(self, points: Sequence[Float], values: Sequence[Fraction]) -> Iterator[tuple[Float, Float]]:
        zeros = [i for i, y in enumerate(values) if y == 0]
        if not zeros:
            return
        for k, c2 in enumerate(points):
            if not any(self.constants(points[i], c2) for i in (zeros[0], zeros[-1])):
                continue
            low, high = min(values[k], Fraction(0)), max(values[k], Fraction(0))
            for step in (-1, 1):
                i = k
                while 0 <= i < len(points) and low <= values[i] <= high:
                    if values[i] == 0 and self.constants(points[i], c2):
                        yield points[i], c2
                        break
                    i += step

    def _steps(self, points: Sequence[Float], values: Sequence[Fraction]) -> Iterator[Float]:
        for sign in (1, -1):
            signed = [sign * y for y in values]
            most = list(accumulate(signed, max))
            least = list(accumulate(reversed(signed), min))[::-1]
            for i in range(len(points) - 1):
                steps = most[i] == signed[i] < signed[i + 1] == least[i + 1] and self.sizes(points[i])
                if steps and self.lipschitz_by_points(points[i], points, values) <= self.steepest(points[i]):
                    yield points[i]

    def lipschitz_by_points(self, eta: Float, points: Sequence[Float], values: Sequence[Fraction]) -> Fraction:
        """The least λ of part 3, from all points and their values."""
        i = eta.ordinal - points[0].ordinal
        slopes = [Fraction(0)]
        for at, side in ((i, range(i)), (i + 1, range(i + 2, len(points)))):
            x, y = points[at].fraction, values[at]
            slopes += [abs((values[k] - y) / (points[k].fraction - x)) for k in side]
        return max(slopes)
