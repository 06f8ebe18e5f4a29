"""Claims about how far one sum can go: its exact extremes, and bounds for sums of very many terms."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.sums import replay_schedule, value_from_json, value_to_json
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, format_named
from fpsmt.networks import order_search
from fpsmt.networks.executions import Execution
from fpsmt.networks.extremes import Box, BoxSum, Range, Witness, number
from fpsmt.networks.order_search import Recipe
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.packed import PackedSum
from fpsmt.networks.trees import tree_to_json

MAX_CODES = 1 << 27  #: bytes of terms that are unpacked from a file


# -- JSON ---------------------------------------------------------------------------------------------------


def range_to_json(x: Range) -> Json:
    """A value, or {"low", "high"} for a box."""
    if isinstance(x, Box):
        return {"low": value_to_json(x.low), "high": value_to_json(x.high)}
    return value_to_json(x)


def range_from_json(data: Json) -> Range:
    if isinstance(data, Mapping):
        return Box(value_from_json(data["low"]), value_from_json(data["high"]))
    return value_from_json(data)


def box_sum_to_json(problem: BoxSum) -> dict[str, Json]:
    terms = [[range_to_json(r) for r in t] if isinstance(t, tuple) else range_to_json(t) for t in problem.terms]
    return {
        "context": str(problem.context),
        "products": problem.is_dot,
        "terms": terms,
        "bias": None if problem.bias is None else range_to_json(problem.bias),
        "execution": problem.execution.to_json(),
    }


def box_sum_from_json(data: Mapping[str, Json]) -> BoxSum:
    terms: Any
    if data["products"]:
        terms = tuple((range_from_json(w), range_from_json(x)) for w, x in data["terms"])
    else:
        terms = tuple(range_from_json(t) for t in data["terms"])
    bias = None if data["bias"] is None else range_from_json(data["bias"])
    return BoxSum(context(data["context"]), terms, bias, Execution.from_json(data["execution"]))


def packed_to_json(problem: PackedSum) -> dict[str, Json]:
    """Codes are compressed (zlib) and written in base64."""
    return {
        "context": str(problem.context),
        "terms": {"format": problem.format.name, "codes": _deflate(problem.codes)},
        "weights": None
        if problem.weight_format is None
        else {"format": problem.weight_format.name, "codes": _deflate(problem.weight_codes)},
        "bias": None if problem.bias is None else value_to_json(problem.bias),
        "execution": problem.execution.to_json(),
    }


def packed_from_json(data: Mapping[str, Json]) -> PackedSum:
    weights = data["weights"]
    return PackedSum(
        context(data["context"]),
        format_named(data["terms"]["format"]),
        _inflate(data["terms"]["codes"]),
        None if weights is None else format_named(weights["format"]),
        b"" if weights is None else _inflate(weights["codes"]),
        None if data["bias"] is None else value_from_json(data["bias"]),
        Execution.from_json(data["execution"]),
    )


def _deflate(codes: bytes) -> str:
    return base64.b64encode(zlib.compress(codes, 6)).decode()


def _inflate(text: str) -> bytes:
    try:
        stream = zlib.decompressobj()
        codes = stream.decompress(base64.b64decode(text, validate=True), MAX_CODES)
    except (ValueError, zlib.error) as error:
        raise UsageError(f"the codes of the terms cannot be read: {error}") from None
    if stream.unconsumed_tail or not stream.eof:
        raise UsageError("the codes of the terms are truncated, or too many")
    return codes


# -- exact extremes -----------------------------------------------------------------------------------------


def witness_to_json(problem: BoxSum, witness: Witness) -> dict[str, Json]:
    """The schedule, and the terms where they vary."""
    out: dict[str, Json] = {"schedule": tree_to_json(witness.schedule)}
    if not problem.fixed:
        fixed = box_sum_to_json(BoxSum.of(witness.inputs))
        out |= {"terms": fixed["terms"], "bias": fixed["bias"]}
    return out


def read_inputs(problem: BoxSum, data: Mapping[str, Json]) -> Sum:
    """The terms of a witness, checked to be in the boxes."""
    own = box_sum_to_json(problem)
    given = box_sum_from_json({**own, "terms": data.get("terms", own["terms"]), "bias": data.get("bias", own["bias"])})
    if not given.fixed:
        raise UsageError("a counterexample must say the value of each term that is a box")
    inputs = Sum(problem.context, given.terms, given.bias, problem.execution)  # type: ignore[arg-type]
    if not problem.admits(inputs):
        raise UsageError("the terms of the counterexample are not those of the claim")
    return inputs


@claim_kind
@dataclass(frozen=True)
class SumExtremes(Claim):
    """Over all allowed schedules, and all terms in their boxes, the least and the greatest result that is not NaN are
    low and high (None when NaN is all there is); NaN is reached, or not, as `nan_reachable` says.

    The two zeros are one number.
    """

    kind = "sum-extremes"
    problem: BoxSum
    low: Float | None
    high: Float | None
    nan_reachable: bool

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None) or (self.low is None and not self.nan_reachable):
            raise UsageError("extremes are two numbers, or none when every result is NaN")
        for end in (self.low, self.high):
            if end is not None and (end.is_nan or end.format != self.problem.context.format):
                raise UsageError(f"{end} is not a number of {self.problem.context.format}")

    @property
    def text(self) -> str:
        ends = "every result is NaN" if self.low is None else f"min = {self.low}, max = {self.high}"
        nan = "" if self.low is None else ", NaN is reached" if self.nan_reachable else ", never NaN"
        boxes = "" if self.problem.fixed else " and all terms in their boxes"
        return f"over all schedules{boxes}: {ends}{nan}, for {self.problem.text}"

    def fields(self) -> dict[str, Json]:
        return {
            "problem": box_sum_to_json(self.problem),
            "low": None if self.low is None else value_to_json(self.low),
            "high": None if self.high is None else value_to_json(self.high),
            "nan_reachable": self.nan_reachable,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SumExtremes:
        low, high = (None if data[name] is None else value_from_json(data[name]) for name in ("low", "high"))
        return cls(box_sum_from_json(data["problem"]), low, high, bool(data["nan_reachable"]))

    def outside(self, result: Float) -> bool:
        """A result that the claim excludes."""
        if result.is_nan:
            return not self.nan_reachable
        if self.low is None or self.high is None:
            return True
        return not number(self.low) <= number(result) <= number(self.high)

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """That an end is never reached needs a proof of the true extremes."""
        if "extremes" not in counterexample:
            return []
        return [SumExtremes.from_fields({**counterexample["extremes"], "problem": box_sum_to_json(self.problem)})]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"schedule": tree} and, with boxes, {"terms", "bias"}, reaching a result outside; or
        {"extremes": {"low", "high", "nan_reachable"}}, the proved ones."""
        if "extremes" in counterexample:
            (actual,) = self.refutation_needs(counterexample)
            assert isinstance(actual, SumExtremes)
            same = self.nan_reachable == actual.nan_reachable and all(
                (a is None) == (b is None) and (a is None or b is None or number(a) == number(b))
                for a, b in ((self.low, actual.low), (self.high, actual.high))
            )
            return Replay(not same, (f"proved: {actual.text}",))
        result, _, lines = replay_schedule(read_inputs(self.problem, counterexample), counterexample["schedule"])
        return Replay(self.outside(result), tuple(lines), {"result": result.hex})

    def reaches(self, end: str, witness: Json) -> tuple[Float, list[str]]:
        """Runs a witness of an end (``low``, ``high``, ``nan``) by reference; a usage error if it does not reach it."""
        result, _, lines = replay_schedule(read_inputs(self.problem, witness), witness["schedule"])
        target = {"low": self.low, "high": self.high}.get(end)
        good = result.is_nan if end == "nan" else (
            target is not None and not result.is_nan and number(result) == number(target)
        )  # fmt: skip
        if not good:
            raise UsageError(f"the schedule for {end} gives {result}, not {target if end != 'nan' else 'NaN'}")
        return result, lines


# -- very many terms ----------------------------------------------------------------------------------------


@claim_kind
@dataclass(frozen=True)
class SumWithin(Claim):
    """Every allowed schedule gives a result in [low, high], and none gives NaN.  The two zeros are one number."""

    kind = "sum-within"
    problem: PackedSum
    low: Float
    high: Float

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if end.is_nan or end.format != self.problem.context.format:
                raise UsageError(f"{end} is not a number of {self.problem.context.format}")

    @property
    def text(self) -> str:
        return f"∀ schedules: result in [{self.low}, {self.high}], for {self.problem.text}"

    def fields(self) -> dict[str, Json]:
        return {
            "problem": packed_to_json(self.problem),
            "low": value_to_json(self.low),
            "high": value_to_json(self.high),
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SumWithin:
        return cls(packed_from_json(data["problem"]), value_from_json(data["low"]), value_from_json(data["high"]))

    def outside(self, result: Float) -> bool:
        return result.is_nan or not number(self.low) <= number(result) <= number(self.high)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"schedule": tree}, or {"recipe": …} for very many terms."""
        if "schedule" in counterexample:
            result, _, lines = replay_schedule(self.problem.unpack(), counterexample["schedule"])
            return Replay(self.outside(result), tuple(lines), {"result": result.hex})
        result, lines = self.run(counterexample["recipe"])
        return Replay(self.outside(result), tuple(lines), {"result": result.hex})

    def run(self, recipe: Json) -> tuple[Float, list[str]]:
        """The result of a recipe's schedule and a line about it."""
        made = Recipe.from_json(recipe)
        result, how = order_search.replay(self.problem, made)
        return result, [f"{made}: {result!r} ({how})"]
