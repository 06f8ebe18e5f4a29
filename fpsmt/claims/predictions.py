"""Claims about a network's outputs under every execution: the class it predicts, or how far outputs can be apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

from fpsmt.claims.claim import Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.claims.network_runs import (
    OfNetwork,
    check_executions,
    executions_from_json,
    executions_to_json,
    network_records,
    network_text,
    outputs_from_json,
    outputs_to_json,
    schedules_from_json,
    schedules_to_json,
)
from fpsmt.errors import UsageError
from fpsmt.floats import Float, less
from fpsmt.floats.values import short_hex, ulp
from fpsmt.floats.vector import to_floats
from fpsmt.networks.interpreter import ActivationOutputs, Executions, Schedules, Trace, execution_of, run
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import Tree, partings, render, steps

MOST_SHOWN = 24  #: terms of a sum whose tree is shown in a replay
MARK = "<-- the trees part here"


def predicted(outputs: Sequence[Float]) -> int | None:
    """The first index of the greatest output; None when an output is NaN, because then there is no greatest one.

    The two zeros are equal, and so are infinities of one sign.

    >>> from fpsmt.floats import exactly, float16
    >>> predicted([exactly(float16, v) for v in (1.0, 2.0, 2.0, -0.0)])
    1
    """
    if any(y.is_nan for y in outputs):
        return None
    best = 0
    for k, y in enumerate(outputs):
        if less(outputs[best], y):
            best = k
    return best


@dataclass(frozen=True, eq=False)
class OverExecutions(OfNetwork):
    """Statements about one network on some inputs under every execution.

    *Executions*: every order, fusing, place of the bias (`executions`: one for all affine nodes, or one for each
    by name), and every result that the contracts of the activations allow; a single-valued activation is one
    function in each execution, and need not be the same one in two executions.

    The network has one input and one output.  Inputs may hold infinities and NaN.
    """

    network: Network
    inputs: tuple[tuple[Float, ...], ...]
    executions: Executions

    def __post_init__(self) -> None:
        node = self.network.input
        _ = self.network.output
        object.__setattr__(self, "inputs", tuple(tuple(x) for x in self.inputs))
        if not self.inputs:
            raise UsageError("a claim about a network's outputs needs at least one input")
        for k, x in enumerate(self.inputs):
            if len(x) != node.size or any(not isinstance(v, Float) or v.format != node.format for v in x):
                raise UsageError(f"input {k} is not a vector of {node.size} values of {node.format}")
        check_executions(self.network, self.executions)

    @cached_property
    def _records(self) -> list[Any]:
        """What the JSON only names: contexts, formats, implementations."""
        return [network_records(self.network), [v.format for v in self.inputs[0]], self.executions]

    @property
    def setting(self) -> str:
        """The inputs, the network and its executions, in words."""
        n = len(self.inputs)
        each = "the input" if n == 1 else f"each of {n} inputs"
        return f"for {each} x; {network_text(self.network, self.executions)}"

    def fields(self) -> dict[str, Json]:
        return {
            "network": self.network.to_json(),
            "inputs": [[short_hex(v.hex) for v in x] for x in self.inputs],
            "executions": executions_to_json(self.executions),
        }

    @staticmethod
    def _fields_read(data: Mapping[str, Json]) -> tuple[Network, tuple[tuple[Float, ...], ...], Executions]:
        network = Network.from_json(data["network"])
        fmt = network.input.format
        executions = executions_from_json(data["executions"])
        return network, tuple(tuple(read_value(fmt, v) for v in x) for x in data["inputs"]), executions

    # -- executions ---------------------------------------------------------------------------------------

    def execute(self, index: int, schedules: Schedules, outputs: ActivationOutputs | None = None) -> Trace:
        """One execution on one input, by the reference interpreter."""
        return run(self.network, self.inputs[index], self.executions, schedules, outputs)

    def _runs(self, counterexample: Json) -> tuple[int, Trace, Trace]:
        index, (first, second), outputs = self.read_counterexample(counterexample)
        return index, self.execute(index, first, outputs[0]), self.execute(index, second, outputs[1])

    def first_parting(self, counterexample: Json) -> tuple[Sum, Tree, Tree] | None:
        """The first sum that has two results in the two executions, and how it ran in each; None when no sum has (then
        activations, or nothing, differ first)."""
        _, one, two = self._runs(counterexample)
        place = _parted(self.network, one, two)
        if place is None or not isinstance(self.network.node(place[0]), Affine):
            return None
        name, i = place
        node = self.network.node(name)
        assert isinstance(node, Affine)
        columns = node.columns(i)
        weights = to_floats(node.formats[0], node.weights[i][columns])
        terms = tuple((w, one.values[node.source][j]) for w, j in zip(weights, columns.tolist(), strict=True))
        bias = None if node.bias is None else to_floats(node.formats[1], node.bias[i : i + 1])[0]
        problem = Sum(node.context, terms, bias, execution_of(self.executions, name))
        return problem, one.sums[place].tree, two.sums[place].tree

    def read_counterexample(
        self, data: Json
    ) -> tuple[int, tuple[Schedules, Schedules], tuple[ActivationOutputs, ActivationOutputs]]:
        if not isinstance(data, Mapping) or not {"input", "schedules"} <= data.keys():
            raise UsageError('a counterexample to a prediction is {"input": index, "schedules": [S, T]}')
        index, both, outputs = data["input"], data["schedules"], data.get("outputs", [[], []])
        if not isinstance(index, int) or not 0 <= index < len(self.inputs):
            raise UsageError(f"the counterexample names input {index!r}: the claim has inputs 0…{len(self.inputs) - 1}")
        if not isinstance(both, Sequence) or len(both) != 2 or not isinstance(outputs, Sequence) or len(outputs) != 2:
            raise UsageError("the counterexample needs two schedules (and two lists of activation outputs, or none)")
        first, second = (schedules_from_json(s) for s in both)
        one, two = (outputs_from_json(self.network, o) for o in outputs)
        return index, (first, second), (one, two)


@claim_kind
@dataclass(frozen=True, eq=False)
class PredictionInvariant(OverExecutions):
    """For each of these inputs, every allowed execution gives a greatest output, and it has one and the same index.

    *Index*: the first index of the greatest output (`predicted`), so a tie counts for the smaller index.  An output
    vector with a NaN has no greatest output: a single execution with one makes the claim false.  There are at least
    two outputs.  Executions: see `OverExecutions`.
    """

    kind = "prediction-invariant"

    def __post_init__(self) -> None:
        super().__post_init__()
        output = self.network.output
        if self.network.sizes[output.name] < 2:
            raise UsageError(f"the output {output.name!r} has one value: a prediction is among at least two")

    @property
    def text(self) -> str:
        return f"∀ executions s, t: argmax N(x; s) = argmax N(x; t) {self.setting}"

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> PredictionInvariant:
        return cls(*cls._fields_read(data))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"input": index, "schedules": [S, T]}, two executions that predict differently.

        S and T map ``"node:output index"`` to trees (as text, or nested lists); sums that are left out run by the
        default of their execution.  With inexact activations also "outputs": [A, B], lists of [implementation, site,
        x, y] (x and y as [format, hex]); inputs left out give correctly rounded results.  Violates when the two
        predictions differ or when one of them has a NaN among its outputs.
        """
        index, one, two = self._runs(counterexample)
        picks = predicted(one.output), predicted(two.output)
        lines = [f"input {index}"]
        for name, trace, pick in (("s", one, picks[0]), ("t", two, picks[1])):
            logits = ", ".join(map(str, trace.output))
            verdict = "NaN among the outputs: no prediction" if pick is None else f"class {pick}"
            lines.append(f"under {name}: {verdict}; outputs {logits}")
        lines += _parting(self.network, one, two)
        bad = picks[0] != picks[1] or None in picks
        return Replay(bad, tuple(lines), {
            "input": index, "predictions": list(picks), "outputs": [[y.hex for y in t.output] for t in (one, two)],
        })  # fmt: skip


@claim_kind
@dataclass(frozen=True, eq=False)
class OutputsClose(OverExecutions):
    """For each of these inputs, the outputs y and y′ of any two allowed executions are numbers at most `ulps` ulps
    apart: |y − y′| ≤ ulps·max(ulp(y), ulp(y′)) for each output, with the ulp of its format.

    NaN and infinite outputs are no numbers: a single execution with one makes the claim false.  The two zeros are one
    number.  Executions: see `OverExecutions`.
    """

    kind = "outputs-within-ulps"
    ulps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.ulps, int) or isinstance(self.ulps, bool) or self.ulps < 0:
            raise UsageError(f"ulps={self.ulps!r}: write a whole number, at least 0")

    @property
    def text(self) -> str:
        return f"∀ executions s, t: |N(x; s) − N(x; t)| ≤ {self.ulps} ulps {self.setting}"

    def fields(self) -> dict[str, Json]:
        return {**super().fields(), "ulps": self.ulps}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> OutputsClose:
        return cls(*cls._fields_read(data), data["ulps"])

    def apart(self, one: Sequence[Float], two: Sequence[Float]) -> int | None:
        """The first output in which two executions are not close, or None."""
        for k, (y, z) in enumerate(zip(one, two, strict=True)):
            if not (y.is_finite and z.is_finite):
                return k
            if abs(y.fraction - z.fraction) > self.ulps * max(ulp(y.format, y.fraction), ulp(z.format, z.fraction)):
                return k
        return None

    def holds_between(self, low: float, high: float) -> bool:
        """Whether all values of the output's format in [low, high] are close to each other; False for infinite ends."""
        if not (isfinite(low) and isfinite(high)):
            return False
        nearest = Fraction(low) if low > 0 else Fraction(high) if high < 0 else Fraction(0)
        return Fraction(high) - Fraction(low) <= self.ulps * ulp(self.network.output.format, nearest)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: two executions as for `PredictionInvariant`; violates when an output differs by more."""
        index, one, two = self._runs(counterexample)
        place = self.apart(one.output, two.output)
        lines = [f"input {index}"]
        if place is None:
            lines.append(f"all outputs are within {self.ulps} ulps")
        else:
            y, z = one.output[place], two.output[place]
            lines.append(f"output {place} is {y!r} under s and {z!r} under t")
            if y.is_finite and z.is_finite:
                unit = max(ulp(y.format, y.fraction), ulp(z.format, z.fraction))
                lines.append(f"they are {float(abs(y.fraction - z.fraction) / unit):g} ulps apart")
        lines += _parting(self.network, one, two)
        return Replay(place is not None, tuple(lines), {
            "input": index, "output": place, "outputs": [[y.hex for y in t.output] for t in (one, two)],
        })  # fmt: skip


def counterexample(
    index: int,
    schedules: tuple[Schedules, Schedules],
    outputs: tuple[ActivationOutputs, ActivationOutputs] = ({}, {}),
) -> dict[str, Any]:
    """The JSON form of a counterexample to a `PredictionInvariant` or `OutputsClose`."""
    data: dict[str, Any] = {
        "input": index,
        "schedules": [schedules_to_json(s) for s in schedules],
    }
    if any(outputs):
        data["outputs"] = [outputs_to_json(each) for each in outputs]
    return data


def _parted(network: Network, one: Trace, two: Trace) -> tuple[str, int] | None:
    """The first node and element that differ between two runs."""
    for node in network.nodes:
        for i, (a, b) in enumerate(zip(one.values[node.name], two.values[node.name], strict=True)):
            if a != b:
                return node.name, i
    return None


def _parting(network: Network, one: Trace, two: Trace) -> list[str]:
    """Where two runs first differ, with the trees of that sum when it is short."""
    place = _parted(network, one, two)
    if place is None:
        return ["they have the same values everywhere"]
    name, i = place
    node = network.node(name)
    lines = [f"they first part at {name}[{i}]: {one.values[name][i]!r} under s, {two.values[name][i]!r} under t"]
    if isinstance(node, Affine) and len(steps(one.sums[place].tree)) <= 2 * MOST_SHOWN:
        terms = [f"w{j}·x{j}" for j in node.columns(i).tolist()] + ["bias"]
        sums = one.sums[place], two.sums[place]
        for execution, trace, marks in zip("st", sums, partings(sums[0].tree, sums[1].tree), strict=True):
            labels = [f"{x}   {MARK}" if k in marks else x for k, x in enumerate(trace.values)]
            lines.append(f"under {execution}:")
            lines += ["  " + line for line in render(trace.tree, labels, terms).splitlines()]
    return lines
