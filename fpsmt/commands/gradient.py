"""``fpsmt gradient``: which gradients reverse mode can return, over all executions of both passes."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
    RESULTS,
    UNKNOWN,
    JsonOption,
    NoSaveOption,
    OutOption,
    Saver,
    TimeLimit,
    TimeoutOption,
    check_limits,
    say,
    time_limit,
)
from fpsmt.commands.options import Reader, read_context, read_execution
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.claims.gradient_targets import Target
    from fpsmt.floats import Float, Format
    from fpsmt.networks.reach import GradientProblem

SHOWN = 12  #: gradients in the table
NARROWER = "narrow --order, or ask for one --component"


def gradient_command(
    net: Annotated[str, typer.Argument(metavar="NET.npz", help="weights1, bias1, …, or a saved network.")],
    at: Annotated[str, typer.Option("--at", metavar="X", help="The input: 0.5,-1 or FILE.npy; or else --box.")] = "",
    box: Annotated[
        str | None, typer.Option("--box", metavar="LO:HI,…", help="Every input in this range, or (--some) some.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="G", help="The gradient asked for: 0,1 or FILE.npy, LO:HI, zero, nan, wrong-sign, …"
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="V", help="And the value: a number, LO:HI or a kind, as --target.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--free-weights", metavar="LO:HI", help="Every (--some: some) weights and biases.")
    ] = None,
    some: Annotated[bool, typer.Option("--some", help="Asks whether some execution returns G, not every one.")] = False,
    upstream: Annotated[
        str | None,
        typer.Option("--upstream", metavar="Y", help="The loss derivative at the outputs (1 for one output)."),
    ] = None,
    component: Annotated[
        int | None, typer.Option("--component", metavar="K", help="The gradient of input element K alone, from 0.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", metavar="F", help="Rounds the parameters to F first.")
    ] = None,
    order: Annotated[str, typer.Option(metavar="O", help="Of the sums of both passes, as in fpsmt sum.")] = "any",
    backward_order: Annotated[
        str | None, typer.Option("--backward-order", metavar="O", help="Of the backward pass, where it differs.")
    ] = None,
    fma: Annotated[str, typer.Option(metavar="M", help="never, always or any.")] = "never",
    accumulator: Annotated[str | None, typer.Option(metavar="G", help="Format and rounding of additions.")] = None,
    products: Annotated[str | None, typer.Option(metavar="H", help="The same of products, or exact.")] = None,
    bias_place: Annotated[str, typer.Option(metavar="P", help="last, first or any.")] = "last",
    derivative: Annotated[
        str, typer.Option("--derivative", metavar="RULE", help="correctly-rounded[:kinks=V], from-output, framework…")
    ] = "correctly-rounded",
    json_to: JsonOption = None,
    timeout: TimeoutOption = 60.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Every gradient that reverse mode can return at one input, or whether it is G under every allowed execution.

    The first word after `gradient` is every, some or never (how many executions return G), or exact without --target.
    Exit code 0 when every execution returns G (with --some: when some execution does), 1 when not.

    G is a number for each element; or, for each or for all, LO:HI or a kind: zero (±0), nonzero, nan, finite, infinite,
    positive, negative, any; or wrong-sign, the sign that the derivative in real numbers does not have.

    With --box, --value or --free-weights the inputs and weights are quantified as executions are, and engines for
    formulas decide; then the word is every, not-every, some, never or unknown.

    \b
    Examples:
      fpsmt gradient net.npz --at 1
      fpsmt gradient net.npz --at 0.5,-1 --target 1,0 --order left-to-right
      fpsmt gradient net.npz --box -1:1 --target nan --some
    """
    from fpsmt.commands.gradient_query import Asked, answer, read_box
    from fpsmt.files.models import read_model, round_network
    from fpsmt.networks.autodiff import rule_named
    from fpsmt.networks.reach import GradientProblem

    check_limits(timeout, jobs)
    if bool(at) == (box is not None):
        raise UsageError("gradient needs --at X, the input, e.g. --at 0.5,-1; or --box LO:HI, all inputs of a range")
    if some and target is None:
        raise UsageError("--some asks about a gradient: give --target G")
    forward = read_execution(order, fma, accumulator, products, bias_place)
    backward = read_execution(backward_order or order, fma, accumulator, products, "last")
    network, about = read_model(Path(net))
    if format is not None:
        network, changed, total = round_network(network, read_context("--format", format))
        about += f"; rounded to {format}: {changed} of {total} parameters changed"
    say(about)
    fmt, elements = network.input.format, network.input.size
    if box is None:
        x = _vector(at, fmt, elements, "--at")
    else:
        x = tuple(low for low, _ in read_box(box, fmt, elements, "--box"))
    output = network.output
    size = network.sizes[output.name]
    if upstream is None and size > 1:
        raise UsageError(f"the network has {size} outputs: give the loss derivative by --upstream, {size} numbers")
    y = _vector(upstream or "1", output.format, size, "--upstream")
    rule = rule_named(derivative)
    problem = GradientProblem(network, x, y, forward, backward, rule, "", component)
    saver = Saver.of("gradient", json_to, out, no_save)
    asked = Asked(box, target, value, weights, some)
    if asked.over_points:
        return answer(asked.query(network, problem, x), saver, timeout, jobs)
    wanted = asked.query(network, problem, x).target if target is not None else None
    return _Answer(problem, wanted, some, saver).go(timeout)


def _vector(text: str, fmt: Format, size: int, where: str) -> tuple[Float, ...]:
    from fpsmt.files.arrays import read_vector

    reader = Reader(fmt, exact=False)
    found = tuple(reader(written, x, where) for written, x in read_vector(text, fmt, where))
    if len(found) != size:
        raise UsageError(f"{where}: {len(found)} numbers are given, and {size} are needed")
    reader.tell()
    return found


def _word(vector: tuple[Float, ...]) -> str:
    from fpsmt.display.outcomes import machine_word

    return ",".join(map(machine_word, vector))


@dataclass
class _Answer:
    """The exact set of gradients, and what it says about the one that is asked for."""

    problem: GradientProblem
    target: tuple[Target, ...] | None
    some: bool
    saver: Saver

    def go(self, timeout: float) -> int:
        from fpsmt import kernel
        from fpsmt.claims.gradients import GradientOutcomes, run_to_json
        from fpsmt.display.progress import Progress
        from fpsmt.engines.gradients import gradient_outcomes
        from fpsmt.kernel import verdict_to_json
        from fpsmt.networks.reach import reachable_gradients

        start = time.monotonic()
        why = ""
        with Progress("following every execution through both passes"):
            try:
                with time_limit(timeout):
                    whole = gradient_outcomes(self.problem)
            except TimeLimit:
                why = f"the set of gradients took more than {timeout:g} s"
            except Unsupported as error:
                why = str(error)
        if why:
            return self.unknown(why, time.monotonic() - start)
        claim = whole.claim
        assert isinstance(claim, GradientOutcomes)
        obligations = [_obligation("all gradients", verdict_to_json(whole), "proved")]
        reached, asked = "exact", claim
        if self.target is not None:
            good_ones = [self.meets(v) for v in claim.outcomes]
            reached = "every" if all(good_ones) else "some" if any(good_ones) else "never"
        if self.one is not None:
            asked = GradientOutcomes(self.problem, (self.one,))
            verdict = kernel.apply("all executions", asked)
            expected = "proved" if reached == "every" else "refuted"
            obligations.append(_obligation("every execution returns the target", verdict_to_json(verdict), expected))
        good = reached in (("exact", "every", "some") if self.some else ("exact", "every"))
        runs = reachable_gradients(self.problem)
        data = {
            "command": "gradient",
            "claim": {"text": self.text(asked.text), "hash": self.key(asked)},
            "verdict": "proved" if good else "refuted",
            "seconds": round(time.monotonic() - start, 4),
            "evidence": None,
            "result": {
                "reached": reached,
                "gradients": [
                    {"value": [x.hex for x in v], "decimal": [x.decimal for x in v], "bits": [x.bits for x in v],
                     "execution": run_to_json(one)}
                    for v, one in runs.items()
                ],
                "obligations": obligations,
            },
        }  # fmt: skip
        self.saver.report(data)
        self.show(reached, asked, list(runs))
        self.saver.save(hashlib.sha256(f"{self.some} {self.key(asked)}".encode()).hexdigest(), data)
        return EXIT_OF[str(data["verdict"])]

    @property
    def one(self) -> tuple[Float, ...] | None:
        """The one gradient that is asked for; None where that is a set."""
        found = tuple(t.low for t in self.target or () if t.low is not None and t.low == t.high)
        return found if self.target is not None and len(found) == len(self.target) else None

    def meets(self, gradient: tuple[Float, ...]) -> bool:
        return self.target is not None and all(t.holds(g) for t, g in zip(self.target, gradient, strict=True))

    def key(self, asked: Any) -> str:
        """The hash of the claim, and of a target that is not part of it."""
        if self.target is None or self.one is not None:
            return str(asked.hash)
        return hashlib.sha256(f"{asked.hash} {self.words}".encode()).hexdigest()

    @property
    def words(self) -> str:
        return ",".join(map(str, self.target or ())) if self.one is None else _word(self.one)

    def text(self, claim: str) -> str:
        from fpsmt.claims.gradients import problem_text

        if self.target is None or (not self.some and self.one is not None):
            return claim
        return f"{'∃' if self.some else '∀'} execution: the gradient is {self.words} for {problem_text(self.problem)}"

    def show(self, reached: str, asked: Any, vectors: list[tuple[Float, ...]]) -> None:
        from fpsmt.claims.gradients import trace_lines
        from fpsmt.display.tables import text_table
        from fpsmt.networks.reach import reachable_gradients

        printer = self.saver.printer
        printer(" ".join(["gradient", reached, str(len(vectors)), *map(_word, vectors)]), self.text(asked.text))
        rows = [
            [", ".join(x.decimal for x in v), ", ".join(x.hex for x in v), ", ".join(x.bits for x in v)]
            for v in vectors[:SHOWN]
        ]
        printer(*text_table(["gradient", "hex", "bits"], rows))
        if len(vectors) > SHOWN:
            printer(f"… and {len(vectors) - SHOWN} more")
        runs = reachable_gradients(self.problem)
        chosen = [v for v in vectors if self.meets(v)][:1] + [v for v in vectors if not self.meets(v)][:1]
        for v in chosen:
            lines = trace_lines(self.problem.execute(runs[v]), runs[v])
            printer("", f"{_word(v)}, by this execution:", *(f"  {line}" for line in lines))

    def unknown(self, reason: str, seconds: float) -> int:
        from fpsmt.claims.gradients import problem_text, problem_to_json

        key = hashlib.sha256(json.dumps(problem_to_json(self.problem), sort_keys=True).encode()).hexdigest()
        data = {
            "command": "gradient",
            "claim": {"text": f"{{gradient : ∃ execution}} for {problem_text(self.problem)}", "hash": key},
            "verdict": "unknown",
            "reason": reason,
            "next_step": NARROWER,
            "seconds": round(seconds, 4),
            "evidence": None,
            "result": {"gradients": []},
        }
        self.saver.report(data)
        self.saver.printer("gradient unknown", f"reason: {reason}", f"next step: {NARROWER}")
        self.saver.save(key, data)
        return UNKNOWN


def _obligation(name: str, record: dict[str, Any], expected: str) -> dict[str, Any]:
    return {
        "spec": name, "case": "", "verdict": record["verdict"], "expected": expected, "how": record["how"],
        "seconds": record["seconds"], "record": record,
    }  # fmt: skip
