"""Does an implementation meet a contract?  For every input, or at one output that was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, context, format_named
from fpsmt.functions import Contract, Implementation, implementation_from_json
from fpsmt.functions.enclosures import place
from fpsmt.functions.implementations import contract_from_json

Ends = tuple[Float, Float]


@claim_kind
@dataclass(frozen=True)
class MeetsContract(Claim):
    """Everything that an implementation (a float program, a table, …) may return is allowed by a contract.

    `inputs` is the format of the inputs.  The inputs are the floats from `low` to `high`, both zeros and ends included
    (an end may be infinite); all values of the format, NaN too, when both are None.  The contract is about the
    implementation's own real function.
    """

    kind = "meets-contract"
    implementation: Implementation
    context: Context
    contract: Contract
    inputs: Format
    low: Float | None = None
    high: Float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise UsageError("give both ends of the inputs, or neither")
        if self.low is not None and self.high is not None:
            if {self.low.format, self.high.format} != {self.inputs}:
                raise UsageError(f"the ends of the inputs must be values of {self.inputs}")
            if self.low.is_nan or self.high.is_nan or place(self.low) > place(self.high):
                raise UsageError(f"[{self.low}, {self.high}] is not an interval of {self.inputs}")

    @property
    def required(self) -> Implementation:
        """The real function with the contract."""
        return Implementation(self.implementation.function, self.contract)

    @property
    def text(self) -> str:
        where = f"[{self.low}, {self.high}] of {self.inputs}" if self.low is not None else f"{self.inputs}"
        mine, asked = self.implementation.contract.text or "rounded", self.contract.text or "rounded"
        name = self.implementation.function.name
        return f"∀ x ∈ {where}: every {mine}(x) is allowed by {name}:{asked} in {self.context}"

    def fields(self) -> dict[str, Json]:
        return {
            "implementation": self.implementation.to_json(),
            "context": str(self.context),
            "contract": self.contract.to_json(),
            "inputs": self.inputs.name,
            "low": None if self.low is None else self.low.hex,
            "high": None if self.high is None else self.high.hex,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> MeetsContract:
        fmt = format_named(data["inputs"])
        ends = (None if data[end] is None else read_value(fmt, data[end]) for end in ("low", "high"))
        own, contract = implementation_from_json(data["implementation"]), contract_from_json(data["contract"])
        return cls(own, context(data["context"]), contract, fmt, *ends)

    def covers(self, x: Float) -> bool:
        """x is one of the inputs."""
        if x.format != self.inputs or self.low is None or self.high is None:
            return x.format == self.inputs
        return not x.is_nan and place(self.low) <= place(x) <= place(self.high)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": hex}, an input at which a result is not allowed."""
        x = read_value(self.inputs, counterexample["x"])
        got, wanted = (each.allowed(self.context, x) for each in (self.implementation, self.required))
        lines = [f"x = {x!r}", f"  allowed: {span(wanted)}", f"  returned: {span(got)}"]
        bad = self.covers(x) and not inside(got, wanted)
        return Replay(bad, tuple(lines), {"x": x.hex, "low": got[0].hex, "high": got[1].hex})


@claim_kind
@dataclass(frozen=True)
class AllowedOutput(Claim):
    """A contract allows one result at one input."""

    kind = "allowed-output"
    implementation: Implementation
    context: Context
    x: Float
    y: Float

    def __post_init__(self) -> None:
        if self.y.format != self.context.format:
            raise UsageError(f"the result {self.y} is a value of {self.y.format}, not of {self.context.format}")

    @property
    def text(self) -> str:
        return f"{self.implementation.text} allows {self.y.hex} at {self.x.hex} ({self.x.format}) in {self.context}"

    def fields(self) -> dict[str, Json]:
        x, y = ({"format": v.format.name, "value": v.hex} for v in (self.x, self.y))
        return {"implementation": self.implementation.to_json(), "context": str(self.context), "x": x, "y": y}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> AllowedOutput:
        x, y = (read_value(format_named(v["format"]), v["value"]) for v in (data["x"], data["y"]))
        return cls(implementation_from_json(data["implementation"]), context(data["context"]), x, y)

    def replay(self, counterexample: Json) -> Replay:
        """There is nothing to choose: any counterexample will do."""
        wanted = self.implementation.allowed(self.context, self.x)
        lines = (f"x = {self.x!r}", f"  allowed: {span(wanted)}", f"  returned: {self.y!r}")
        return Replay(not inside((self.y, self.y), wanted), lines, {"x": self.x.hex, "y": self.y.hex})


def inside(got: Ends, wanted: Ends) -> bool:
    """Everything between the ends of `got` is allowed; NaN is allowed where only NaN is."""
    if got[0].is_nan or wanted[0].is_nan:
        return got[0].is_nan and wanted[0].is_nan
    return place(wanted[0]) <= place(got[0]) and place(got[1]) <= place(wanted[1])


def span(ends: Ends) -> str:
    return repr(ends[0]) if ends[0] == ends[1] else f"{ends[0]!r} … {ends[1]!r}"
