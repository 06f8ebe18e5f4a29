"""Claims about activation functions alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, context, exactly, format_named, read_number
from fpsmt.functions import Function, correctly_rounded, function_named
from fpsmt.functions.enclosures import place


@claim_kind
@dataclass(frozen=True)
class ConstantOn(Claim):
    """The correctly rounded function takes one value on every float from `low` to `high`, ends included.

    −0 is below +0, as in `functions.constant_on`: a range from +0 on does not hold it.
    """

    kind = "constant-on"
    function: Function
    context: Context
    low: Float
    high: Float
    value: Float

    def __post_init__(self) -> None:
        ends = self.low, self.high
        if self.low.format != self.high.format or any(x.is_nan for x in ends) or place(self.low) > place(self.high):
            raise UsageError(f"[{self.low}, {self.high}] is not an interval of one format")

    @property
    def text(self) -> str:
        where = f"[{self.low.hex}, {self.high.hex}]"
        return f"∀ x ∈ {where}: {self.function.name}(x) rounds to {self.value} in {self.context}"

    def fields(self) -> dict[str, Json]:
        return {
            "function": self.function.name,
            "context": str(self.context),
            "format": self.low.format.name,
            "low": self.low.hex,
            "high": self.high.hex,
            "value": self.value.hex,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> ConstantOn:
        fmt, ctx = format_named(data["format"]), context(data["context"])
        low, high = read_value(fmt, data["low"]), read_value(fmt, data["high"])
        return cls(function_named(data["function"]), ctx, low, high, read_value(ctx.format, data["value"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": hex}."""
        x = read_value(self.low.format, counterexample["x"])
        y = correctly_rounded(self.function, self.context, x)
        inside = not x.is_nan and place(self.low) <= place(x) <= place(self.high)
        return Replay(inside and y != self.value, (f"{self.function.name}({x!r}) = {y!r}",), {"y": y.hex})


def read_value(fmt: Format, text: str) -> Float:
    """A value of the format from text; a usage error when the format does not have it exactly."""
    return exactly(fmt, read_number(text))
