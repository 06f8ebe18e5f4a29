"""``fpsmt compare``: whether two networks, two formats or two executions of one, agree on a box of inputs."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
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
from fpsmt.commands.options import ActivationOption, BiasOption, ExternalOption, Source, read_context
from fpsmt.commands.states import States
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.comparison import Agree, Relation
    from fpsmt.claims.properties import Box
    from fpsmt.kernel import Verdict
    from fpsmt.networks.networks import Network

EARLIER = 0.95  #: of the time, after which the search ends by itself


def compare_command(
    model: Annotated[str, typer.Argument(metavar="A", help="FILE.onnx, or FILE.npz as for stability.")],
    second: Annotated[str | None, typer.Argument(metavar="[B]", help="Another network (A itself).")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="F", help="Rounds the parameters of the second to F, computes in it.")
    ] = None,
    execution: Annotated[
        str, typer.Option(metavar="E", help="How sums of the first run: ORDER fma=… accumulator=… products=… bias=…")
    ] = "any fma=any bias=any",
    other: Annotated[str | None, typer.Option(metavar="E", help="The same of the second (as the first).")] = None,
    query: Annotated[
        str | None, typer.Option(metavar="FILE.vnnlib", help="A query whose box of inputs is taken, and nothing else.")
    ] = None,
    box: Annotated[str | None, typer.Option(metavar="LO:HI", help="Every input is from LO to HI.")] = None,
    around: Annotated[str | None, typer.Option(metavar="FILE", help="An input: FILE.npy or FILE.npz:NAME.")] = None,
    radius: Annotated[str, typer.Option(metavar="R", help="How far from it each input may be.")] = "0",
    ulps: Annotated[int | None, typer.Option(metavar="K", help="Asks for outputs within K ulps.")] = None,
    within: Annotated[str | None, typer.Option(metavar="D", help="Asks for outputs at most D apart.")] = None,
    activation: ActivationOption = None,
    external_data: ExternalOption = False,
    bias_from_add: BiasOption = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the search.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Goes on from what an unfinished run has saved.")] = False,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: JobsOption = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Whether two networks give the same class (or outputs within K ulps, or at most D apart) on a box of inputs.

    For every input and every allowed execution of both.  With --to: whether lowering the precision changes anything.
    Exit code 0 for proved, 1 for refuted (with an input and two executions, replayed), 3 for unknown.

    \b
    Examples:
      fpsmt compare model.onnx --to bfloat16 --other "any fma=any accumulator=float32" --query query.vnnlib
      fpsmt compare model.onnx --around image.npy --radius 1/255 --execution left-to-right --other "any fma=any"
    """
    from fpsmt.claims.comparison import Agree, both_executions, side_by_side
    from fpsmt.files.models import read_model
    from fpsmt.networks.executions import parse_execution

    workers = check_limits(timeout, jobs)
    saver = Saver.of("compare", json_to, out, no_save)
    one, two = (parse_execution(text) for text in (execution, execution if other is None else other))
    start = time.monotonic()
    networks = []
    for path in dict.fromkeys([model, second or model]):
        source = Source(path, activation, external_data, bias_from_add)
        network, about = read_model(Path(path), source.implementations, external_data, bias_from_add)
        say(about)
        networks.append(network)
    first, last = networks[0], _lowered(networks[-1], to)
    both = side_by_side(first, last)
    relation = _relation(first, last, ulps, within)
    asked = Agree(both, both_executions(both, one, two), _box(first, model, query, box, around, radius), relation)
    say(asked.text)
    states = States(saver, asked)
    try:
        verdict = states.decided("comparing", timeout - (time.monotonic() - start), resume, workers, seed, EARLIER)
    except KeyboardInterrupt:
        saver.printer("compare unknown")
        states.ended("interrupted")
        return INTERRUPTED
    if states.about and (verdict is None or verdict.name == "unknown"):
        states.ended("not decided")
        saver = replace(saver, folder=None)  # the state is what is saved
    data = states.record(verdict, "the time limit was passed")
    return _report(asked, verdict, data, saver, time.monotonic() - start)


def _lowered(network: Network, to: str | None) -> Network:
    from fpsmt.files.models import round_network

    if to is None:
        return network
    ctx = read_context("--to", to)
    rounded, changed, total = round_network(network, ctx)
    say(f"the second is rounded to {ctx}: {changed} of {total} parameters changed")
    return rounded


def _relation(one: Network, two: Network, ulps: int | None, within: str | None) -> Relation:
    from fpsmt.claims.comparison import Relation

    if ulps is not None and within is not None:
        raise UsageError("--ulps and --within are two questions: write one of them")
    if ulps is not None:
        coarse = min((one.output.format, two.output.format), key=lambda fmt: (fmt.precision, -fmt.emin))
        return Relation("ulps", Fraction(ulps), coarse)
    return Relation("argmax") if within is None else Relation("difference", _number("--within", within))


def _number(option: str, text: str) -> Fraction:
    from fpsmt.floats import read_number

    try:
        value = read_number(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
    if isinstance(value, float):
        if value != 0:
            raise UsageError(f"{option} {text}: write a finite number")
        value = Fraction(0)
    return value


def _box(
    network: Network, model: str, query: str | None, box: str | None, around: str | None, radius: str
) -> Box:  # fmt: skip
    """The sides that one of the options gives."""
    given = [name for name, value in (("--query", query), ("--box", box), ("--around", around)) if value is not None]
    if len(given) != 1:
        words = " and ".join(given) or "none"
        raise UsageError(f"the inputs are given by one of --query, --box and --around, not {words}")
    size = network.input.size
    if box is not None:
        ends = box.split(":")
        if len(ends) != 2:
            raise UsageError(f"--box {box}: write LO:HI, e.g. --box 0:1")
        low, high = (_number("--box", end) for end in ends)
        return ((low, high),) * size
    if around is not None:
        from fpsmt.files.models import check_inputs, read_inputs
        from fpsmt.floats.vector import to_floats

        array = read_inputs(around, network, Fraction(1))
        check_inputs(network.input.format, array, around)
        if len(array) != 1:
            raise UsageError(f"--around {around} has {len(array)} inputs: a box is around one")
        far, point = _number("--radius", radius), to_floats(network.input.format, array[0])
        if not all(v.is_finite for v in point):
            raise UsageError(f"--around {around}: the input is not finite")
        return tuple((v.fraction - far, v.fraction + far) for v in point)
    assert query is not None
    return _box_of(network, model, Path(query))


def _box_of(network: Network, model: str, path: Path) -> Box:
    from fpsmt.files.onnx import read_onnx
    from fpsmt.files.queries import ask
    from fpsmt.files.vnnlib import read_vnnlib
    from fpsmt.networks.executions import parse_execution

    if not model.endswith(".onnx"):
        raise UsageError(f"--query is about ONNX files: give the box of {model} by --box or --around")
    spec = read_vnnlib(path)
    if len(spec.networks) != 1:
        raise UsageError(f"{path} declares {len(spec.networks)} networks: a box of inputs is of one")
    problem = ask(spec, {spec.networks[0].name: read_onnx(model)}, parse_execution("any"))
    boxes = {query.box for query in problem.claim.safety.queries}
    if len(boxes) != 1 or problem.claim.network.input.size != network.input.size:
        raise UsageError(f"{path} has {len(boxes)} boxes of inputs, and one is needed")
    return boxes.pop()


def _report(claim: Agree, verdict: Verdict | None, data: dict[str, Any], saver: Saver, seconds: float) -> int:
    from fpsmt.kernel import Refuted

    word = "unknown" if verdict is None else verdict.name
    lines, result = [f"compare {word}"], dict[str, Any](answer=word)
    if isinstance(verdict, Refuted):
        lines += [f"  {line}" for line in verdict.replay.lines]
        result |= dict(verdict.replay.values)
    elif word == "unknown":
        lines.append(f"  {data['reason']}")
    data = {"command": "compare", **data, "seconds": round(seconds, 4), "result": result}
    saver.report(data)
    saver.printer(*lines)
    saver.save(claim.hash, data)
    return UNKNOWN if verdict is None else EXIT_OF[verdict.name]
