"""``fpsmt verify``: whether some execution of a network satisfies a VNN-LIB query, by the standard's contract."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
    INTERRUPTED,
    RESULTS,
    UNKNOWN,
    JobsOption,
    JsonOption,
    NoSaveOption,
    OutOption,
    Saver,
    TimeoutOption,
    check_limits,
    say,
)
from fpsmt.commands.options import ActivationOption, BiasOption, ExternalOption, Source, read_context, read_execution
from fpsmt.commands.states import States
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.properties import Safe
    from fpsmt.files.onnx import Model
    from fpsmt.files.queries import Problem
    from fpsmt.files.vnnlib import Specification
    from fpsmt.floats import Float
    from fpsmt.kernel import Refuted, Verdict

WORDS = {"proved": "unsat", "refuted": "sat", "unknown": "unknown"}


def verify_command(
    query: Annotated[str, typer.Argument(metavar="QUERY.vnnlib", help="Of version 1.0 or 2.0.")],
    network: Annotated[
        list[str] | None, typer.Option("--network", metavar="[NAME=]FILE.onnx", help="A model for each network.")
    ] = None,
    order: Annotated[str, typer.Option(metavar="O", help="As in fpsmt sum.")] = "any",
    fma: Annotated[str, typer.Option(metavar="M", help="never, always or any.")] = "any",
    accumulator: Annotated[str | None, typer.Option(metavar="G", help="Format and rounding of additions.")] = None,
    products: Annotated[str | None, typer.Option(metavar="H", help="The same of products, or exact.")] = None,
    bias_place: Annotated[str, typer.Option(metavar="P", help="last, first or any.")] = "any",
    format: Annotated[
        str | None, typer.Option("--format", metavar="F", help="Rounds the parameters to F and computes in it.")
    ] = None,
    cast: Annotated[
        bool, typer.Option("--cast", help="With --format: inputs and outputs keep their types, and are cast.")
    ] = False,
    activation: ActivationOption = None,
    external_data: ExternalOption = False,
    bias_from_add: BiasOption = False,
    serialise: Annotated[
        str | None,
        typer.Option("--serialise-assignments", "--assignments", metavar="DIR", help="Writes NAME.pb, not lines."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the search.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Goes on from what an unfinished run has saved.")] = False,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: JobsOption = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Whether some input and some allowed execution of a network satisfy a VNN-LIB query.

    The first line is sat (with the assignment, replayed bit for bit), unsat, unknown or timed-out.
    Executions: any order, any fma, a bias anywhere, in the types of the model, unless said otherwise.
    Exit code 0 for unsat (safe), 1 for sat (unsafe), 3 for unknown and timed-out.
    A run that is interrupted, or out of time, goes on with --resume where it stopped.

    \b
    Examples:
      fpsmt verify query.vnnlib --network model.onnx
      fpsmt verify query.vnnlib --network f=model.onnx --order left-to-right --fma always
      fpsmt verify query.vnnlib --network model.onnx --format bfloat16 --cast --accumulator float32
    """
    from fpsmt.files.queries import ask
    from fpsmt.files.vnnlib import read_vnnlib

    if cast and format is None:
        raise UsageError("--cast goes with --format: without one, everything is computed in the types of the model")
    workers = check_limits(timeout, jobs)
    saver = Saver.of("verify", json_to, out, no_save)
    execution = read_execution(order, fma, accumulator, products, bias_place)
    start = time.monotonic()
    spec = read_vnnlib(Path(query))
    models = _models(spec, network or [], Source("", activation, external_data, bias_from_add))
    if format is not None:
        models = {name: _rounded(spec, model, format, cast) for name, model in models.items()}
    problem = ask(spec, models, execution)
    if problem.empty:
        say(f"note: {problem.empty} boxes of the query hold no value of {problem.claim.network.input.format}")
    say(problem.claim.text)
    states = States(saver, problem.claim)
    try:
        verdict = states.decided("deciding", timeout - (time.monotonic() - start), resume, workers, seed)
    except KeyboardInterrupt:
        saver.printer(WORDS["unknown"])
        states.ended("interrupted")
        return INTERRUPTED
    late = verdict is None or (verdict.name == "unknown" and time.monotonic() - start >= timeout)
    if late and states.about:
        states.ended("out of time")
        saver = replace(saver, folder=None)  # the state is what is saved
    data = states.record(verdict, "no time left")
    return _report(spec, problem, verdict, late, data, saver, serialise, time.monotonic() - start)


def _models(spec: Specification, given: list[str], source: Source) -> dict[str, Model]:
    """The model of each declared network, by its name."""
    from fpsmt.files.onnx import read_onnx

    declared = [d.name for d in spec.networks if d.same is None]
    found: dict[str, Model] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or name not in {d.name for d in spec.networks}:
            if len(declared) > 1 or (equals and not Path(text).exists()):
                names = ", ".join(filter(None, declared)) or "no names"
                raise UsageError(f"--network {text}: write NAME=FILE.onnx; the query declares {names}")
            name, file = declared[0], text
        if name in found:
            raise UsageError(f"--network {text}: a model is given twice for one network")
        model = read_onnx(file, source.implementations, source.external, source.bias_from_add)
        say(model.about(file))
        found[name] = model
    if not found:
        raise UsageError("verify needs --network FILE.onnx")
    return found


def _rounded(spec: Specification, model: Model, format: str, cast: bool) -> Model:
    """The model with its parameters rounded to a format in which everything is computed, perhaps between casts."""
    from fpsmt.files.models import round_network, with_casts
    from fpsmt.files.onnx import TYPE_NAMES

    if not cast and any(t.type != "real" for d in spec.networks for t in d.tensors):
        raise UsageError("--format changes the types that the query declares, which would not match; see --cast")
    ctx = read_context("--format", format)
    if ctx.format not in TYPE_NAMES:
        raise UsageError(f"--format {format}: ONNX has no such type; write one of {', '.join(TYPE_NAMES.values())}")
    network, changed, total = round_network(model.network, ctx)
    say(f"rounded to {ctx}: {changed} of {total} parameters changed")
    if cast:
        return replace(model, network=with_casts(network, model.network))
    ports = [tuple(replace(p, format=ctx.format) for p in each) for each in (model.inputs, model.outputs)]
    return replace(model, network=network, inputs=ports[0], outputs=ports[1])


def _report(
    spec: Specification, problem: Problem, verdict: Verdict | None, late: bool, data: dict[str, Any], saver: Saver,
    folder: str | None, seconds: float,
) -> int:  # fmt: skip
    from fpsmt.kernel import Refuted

    word = "timed-out" if verdict is None or late else WORDS[verdict.name]
    lines, result = [word], dict[str, Any](answer=word)
    claim = problem.claim
    if isinstance(verdict, Refuted):
        inputs, outputs = _witness(claim, verdict)
        result |= _result(problem, inputs, outputs, verdict)
        lines += _assignment(problem, spec.version, inputs, outputs, folder)
        for line in verdict.replay.lines:
            say(line)
        say(f"violated by {result['violated_by']}")
    elif verdict is not None and verdict.name == "unknown":
        say(f"reason: {data['reason']}")
    data = {"command": "verify", **data, "seconds": round(seconds, 4), "result": result}
    saver.report(data)
    saver.printer(*lines)
    saver.save(claim.hash, data)
    return UNKNOWN if verdict is None else EXIT_OF[verdict.name]


def _witness(claim: Safe, verdict: Refuted) -> tuple[list[Float], list[Float]]:
    """The inputs and the outputs of the replayed execution."""
    from fpsmt.claims.functions import read_value

    values, network = verdict.replay.values, claim.network
    inputs = [read_value(network.input.format, text) for text in values["input"]]
    return inputs, [read_value(network.output.format, text) for text in values["outputs"]]


def _assignment(
    problem: Problem, version: str, inputs: list[Float], outputs: list[Float], folder: str | None
) -> list[str]:
    from fpsmt.files.assignments import assignment_lines, serialise

    if folder is None:
        return assignment_lines(problem, version, inputs, outputs)
    for path in serialise(problem, Path(folder), inputs, outputs):
        say(f"saved {path}")
    return []


def _result(problem: Problem, inputs: list[Float], outputs: list[Float], verdict: Refuted) -> dict[str, Any]:
    from fpsmt.engines.violations import violation

    witness = {t.name: [x.hex for x in problem.values(t, inputs, outputs)] for t in problem.tensors}
    return {"witness": witness, "violated_by": violation(problem.claim, verdict.counterexample).violated_by}
