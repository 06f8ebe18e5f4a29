"""``fpsmt represent``: a network with the values of a table, whatever the order of its sums."""

from __future__ import annotations

import os
import time
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
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.representation import Values
    from fpsmt.engines.representation import Representation


def represent_command(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Rows x, …, f(x): FILE.csv, .npy, or .npz.")],
    format: Annotated[str, typer.Option("--format", metavar="F", help="Format and rounding of the network.")],
    activation: Annotated[str, typer.Option("--activation", metavar="A", help="E.g. relu, sigmoid, tanh, gelu, sin.")],
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="NET", help="Where the network goes.")] = None,
    implementation: Annotated[
        str | None, typer.Option(metavar="FILE.npy", help="Codes of the outputs of an implementation, by input code.")
    ] = None,
    outputs: Annotated[int, typer.Option(metavar="N", help="How many of the last columns are values.")] = 1,
    order: Annotated[str, typer.Option(metavar="O", help="Only any: the network holds for every order.")] = "any",
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """A network over a format that returns exactly the values of a table, for every order of every sum.

    Inputs are finite, values finite or ±inf.  The network is verified at every input of the table before it is written.
    Exit code 0 when it is; 1 when two inputs of different values cannot be told apart, which are named; 3 when no
    network was found.
    """
    check_limits(timeout, jobs)
    if order != "any":
        raise UsageError(f"--order {order}: networks are made for every order at once; leave --order out, or write any")
    if outputs < 1:
        raise UsageError(f"--outputs {outputs}: a table has at least one value in each row")
    from fpsmt.commands.options import read_context
    from fpsmt.files.representations import read_implementation, read_table
    from fpsmt.functions import function_named, implementation_named

    if output is not None:
        _check_output(output)
    ctx = read_context("--format", format)
    use = implementation_named(activation)
    if implementation is not None:
        use = read_implementation(implementation, function_named(activation), ctx.format)
    saver = Saver.of("represent", json_to, out, no_save)
    values = read_table(table, ctx.format, outputs)
    return _run(ctx, use, values, saver, timeout, output)


def _check_output(path: str) -> None:
    """Before the work: the network can be written there."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"-o {path} cannot be written: name a file in a folder that exists and is writable")


def _run(ctx: Any, use: Any, values: Values, saver: Saver, timeout: float, output: str | None) -> int:
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.engines.representation import represent
    from fpsmt.files.representations import save_representation
    from fpsmt.kernel import verdict_to_json

    start = time.monotonic()
    printer = saver.printer
    try:
        with time_limit(timeout), Progress("looking for a network") as progress:
            found = represent(ctx, use, values, Options(timeout=timeout, progress=progress.update))
    except TimeLimit:
        reason = f"the time limit of {timeout:g} s has passed"
        text = f"a network of {use.text} in {ctx} with the values of the table"
        saver.report({
            "command": "represent", "claim": {"text": text, "hash": values.digest}, "verdict": "unknown",
            "reason": reason, "seconds": round(time.monotonic() - start, 4), "evidence": None, "result": {},
        })  # fmt: skip
        printer("represent unknown", f"reason: {reason}", "next step: raise --timeout")
        return UNKNOWN
    verdict = found.verdict
    data = {
        **verdict_to_json(verdict), "command": "represent", "seconds": round(time.monotonic() - start, 4),
        "result": result(found, values),
    }  # fmt: skip
    printer(*lines(found, values))
    saver.report(data)
    if found.network is None or found.network.parameters <= 1 << 16:
        saver.save(verdict.claim.hash, data)
    else:
        say("the result holds the whole network and is not saved: name files with -o and --json")
    if output is not None and found.network is not None:
        form = save_representation(found.network, output)
        say(f"saved {output}, the {form} form of the network")
    return EXIT_OF[verdict.name]


def result(found: Representation, values: Values) -> dict[str, Any]:
    """What scripts rely on."""
    network, verdict = found.network, found.verdict
    out: dict[str, Any] = {"construction": found.construction or None, "reasons": list(found.reasons)}
    if network is not None:
        out |= {
            "layers": len(network.layers),
            "sizes": [layer.size for layer in network.layers],
            "neurons": network.neurons,
            "parameters": network.parameters,
            "inputs_checked": len(values),
            "finite": bool(verdict.evidence.found["finite"]),  # type: ignore[union-attr]
        }
    elif verdict.name == "refuted":
        out |= {"layers": None, "parameters": None, "inputs_checked": 0, "pair": _pair(found, values)}
    return out


def _pair(found: Representation, values: Values) -> list[str]:
    """Two inputs as hex floats, each one number or (x;y;…)."""
    from fpsmt.floats.vector import to_floats

    assert found.pair is not None
    rows = [[x.hex for x in to_floats(values.format, values.points[row])] for row in found.pair]
    return [row[0] if len(row) == 1 else f"({';'.join(row)})" for row in rows]


def lines(found: Representation, values: Values) -> list[str]:
    network, verdict = found.network, found.verdict
    if network is not None:
        facts = result(found, values)
        overflow = "some sums may overflow to ±inf, which the activation takes"
        sums = "every hidden sum is finite" if facts["finite"] else overflow
        return [
            f"represent proved layers={facts['layers']} parameters={facts['parameters']} inputs={len(values)}",
            f"{network.text}: {found.construction}, {network.neurons} neurons",
            f"equal to the table at all {len(values)} inputs, for every order of every sum; {sums}",
        ]
    if verdict.name == "refuted":
        return [
            f"represent refuted pair={','.join(_pair(found, values))}",
            "no first layer tells these two inputs apart, so that no network has different values there, at any depth"
            + (":" if values.inputs == 1 else "; in the coordinate where they differ:"),
            *(f"  {line}" for line in verdict.replay.lines),  # type: ignore[union-attr]
            "(first layers whose sums are finite at every input of the table)",
        ]
    return ["represent unknown", *(f"reason: {reason}" for reason in found.reasons)]
