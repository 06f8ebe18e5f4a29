"""``fpsmt gradient`` over a box, for a value too, or for free weights: a question for the engines of formulas."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpsmt.commands.common import EXIT_OF, Saver
from fpsmt.commands.options import Reader
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.gradient_targets import Target
    from fpsmt.engines.gradient_queries import Answer, Query
    from fpsmt.floats import Float, Format
    from fpsmt.networks.networks import Network
    from fpsmt.networks.reach import GradientProblem

WRONG_SIGN = "wrong-sign"
NEXT_STEP = "raise --timeout, narrow the box or --order, or ask at one point"
#: The answers, by whether --some is asked for and the verdict on the claim.
WORDS = {
    (False, "proved"): "every", (False, "refuted"): "not-every", (True, "proved"): "never", (True, "refuted"): "some"
}  # fmt: skip


def read_targets(text: str, fmt: Format, size: int, where: str) -> tuple[Target, ...]:
    """A number, LO:HI or a kind for each element, or numbers from a file; a single kind or range is for all."""
    from fpsmt.claims.gradient_targets import KINDS, Target
    from fpsmt.files.arrays import read_vector

    reader, found = Reader(fmt, exact=False), []
    if Path(text).is_file() or text.endswith(".npy"):
        numbers = [reader(written, x, where) for written, x in read_vector(text, fmt, where)]
        found = [Target("", x, x) for x in numbers]
    for word in (part.strip() for part in text.split(",")) if not found else ():
        found.append(Target(word) if word in KINDS else Target("", *_ends(word, reader, where)))
    if len(found) == 1 and (found[0].kind or ":" in text):
        found *= size
    if len(found) != size:
        raise UsageError(f"{where}: {len(found)} targets are given, and {size} are needed")
    reader.tell()
    return tuple(found)


def read_box(text: str, fmt: Format, size: int, where: str) -> tuple[tuple[Float, Float], ...]:
    """LO:HI or a number for each element; a single one is for all."""
    reader = Reader(fmt, exact=False)
    ends = [_ends(word.strip(), reader, where) for word in text.split(",")]
    if len(ends) == 1:
        ends *= size
    if len(ends) != size:
        raise UsageError(f"{where}: {len(ends)} ranges are given, and {size} are needed")
    reader.tell()
    return tuple(ends)


def _ends(word: str, reader: Reader, where: str) -> tuple[Float, Float]:
    from fpsmt.floats import less, read_number

    parts = [part.strip() for part in word.split(":")]
    if not all(parts) or len(parts) > 2:
        raise UsageError(f"{where}: {word[:60]!r} is neither a number nor LO:HI")
    low, high = (reader(part, read_number(part), where) for part in (parts[0], parts[-1]))
    if len(parts) > 1 and (low.is_nan or high.is_nan or less(high, low)):
        raise UsageError(f"{where}: {word[:60]!r} is an empty range")
    return low, high


@dataclass(frozen=True)
class Asked:
    """The options of the command that make it a query, as written."""

    box: str | None
    target: str | None
    value: str | None
    weights: str | None
    some: bool

    @property
    def over_points(self) -> bool:
        """Not a question about the gradients at one point alone."""
        return self.box is not None or self.value is not None or self.weights is not None

    def query(self, network: Network, problem: GradientProblem, at: tuple[Float, ...] | None) -> Query:
        from fpsmt.engines.gradient_queries import Query, wrong_sign

        if self.target is None:
            raise UsageError("say which gradient: --target G, LO:HI, zero, nan, … (any, with --value alone)")
        fmt, output = network.input.format, network.output
        box = read_box(self.box, fmt, network.input.size, "--box") if self.box is not None else None
        if box is None:
            assert at is not None
            box = tuple((x, x) for x in at)
        size = network.input.size if problem.component is None else 1
        value = None
        if self.value is not None:
            value = read_targets(self.value, output.format, network.sizes[output.name], "--value")
        free = None
        if self.weights is not None:
            ((low, high),) = read_box(self.weights, output.format, 1, "--free-weights")
            if not (low.is_finite and high.is_finite):
                raise UsageError("--free-weights LO:HI are finite")
            free = low, high
        wrong = self.target == WRONG_SIGN
        target = read_targets("any" if wrong else self.target, fmt, size, "--target")
        query = Query(problem, box, target, value, self.some, free)
        if wrong and free is not None:
            raise UsageError("the real derivative has no one sign for all weights: leave --free-weights out")
        return replace(query, target=wrong_sign(query)) if wrong else query


def answer(query: Query, saver: Saver, timeout: float, jobs: int | None) -> int:
    """Decides, prints and saves."""
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.engines.gradient_queries import ask
    from fpsmt.kernel import verdict_to_json

    start = time.monotonic()
    with Progress("deciding") as progress:
        effort = Options(timeout=timeout, progress=progress.update)
        found = ask(query, effort if jobs is None else replace(effort, jobs=jobs))
    verdict = found.verdict
    word = WORDS.get((query.some, verdict.name), "unknown")
    decided = {"every": "proved", "some": "proved", "not-every": "refuted", "never": "refuted"}.get(word, "unknown")
    record = verdict_to_json(verdict)
    obligation = {
        "spec": "the gradient", "case": "", "verdict": verdict.name, "expected": verdict.name,
        "how": record.get("how", ""), "seconds": record.get("seconds", 0.0), "record": record,
    }  # fmt: skip
    data: dict[str, Any] = {
        "command": "gradient",
        "claim": {"text": query.question, "hash": verdict.claim.hash},
        "verdict": decided,
        "seconds": round(time.monotonic() - start, 4),
        "evidence": None,
        "result": {"reached": word, "gradients": [], **_witness_json(query, found), "obligations": [obligation]},
    }
    if decided == "unknown":
        data |= {"reason": getattr(verdict, "reason", ""), "next_step": NEXT_STEP}
    saver.report(data)
    saver.printer(f"gradient {word}", query.question)
    if decided == "unknown":
        saver.printer(f"reason: {data['reason']}", f"next step: {NEXT_STEP}")
    _show(query, found, saver)
    saver.save(hashlib.sha256(f"{query.some} {verdict.claim.hash}".encode()).hexdigest(), data)
    return EXIT_OF[decided]


def _witness_json(query: Query, found: Answer) -> dict[str, Any]:
    from fpsmt.claims.gradients import run_to_json

    if found.witness is None:
        return {}
    problem, trace = found.witness.problem, found.witness.trace
    net = problem.network
    witness = {
        "input": [x.hex for x in problem.inputs[net.input.name]],
        "gradient": [g.hex for g in problem.value(trace)],
        "value": [y.hex for y in trace.forward.values[net.output.name]],
        "execution": run_to_json(found.witness.run),
    }
    if query.free is not None:
        witness["network"] = net.to_json()
    return {"witness": witness}


def _show(query: Query, found: Answer, saver: Saver) -> None:
    from fpsmt.claims.gradients import trace_lines
    from fpsmt.floats.vector import to_floats
    from fpsmt.networks.nodes import Affine

    if found.witness is None:
        return
    problem, trace = found.witness.problem, found.witness.trace
    at, gradient = problem.inputs[problem.network.input.name], problem.value(trace)
    words = [", ".join(x.decimal for x in vector) for vector in (at, gradient)]
    saver.printer("", f"at {words[0]} the gradient is {words[1]}, by this execution:")
    if query.free is not None:
        for node in problem.network.of_kind(Affine):
            for i, row in enumerate(node.weights):
                shown = ", ".join(w.decimal for w in to_floats(node.formats[0], row))
                if node.bias is not None:
                    shown += f"; bias {to_floats(node.formats[1], node.bias[i : i + 1])[0].decimal}"
                saver.printer(f"  {node.name}, row {i}: {shown}")
    saver.printer(*(f"  {line}" for line in trace_lines(trace, found.witness.run)))
