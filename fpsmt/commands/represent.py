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
    from fpsmt.constructions.sparse import SparseNetwork
    from fpsmt.engines.representation import Representation

MOST_SAVED = 1 << 16  #: parameters of a network whose result is saved without being asked for


def represent_command(
    format: Annotated[str, typer.Option("--format", metavar="F", help="Format and rounding of the network.")],
    activation: Annotated[str, typer.Option("--activation", metavar="A", help="E.g. relu, sigmoid, tanh, gelu, sin.")],
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE …", help="Rows x, …, f(x): FILE.csv, .npy, or .npz.")
    ] = None,
    random: Annotated[
        int | None, typer.Option("--random", metavar="N", help="N random tables over all finite inputs instead.")
    ] = None,
    inputs: Annotated[int, typer.Option("--inputs", metavar="N", help="How many inputs random tables have.")] = 1,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of the random tables.")] = 0,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="NET", help="Where the network goes.")] = None,
    implementation: Annotated[
        str | None, typer.Option(metavar="FILE.npy", help="Codes of the outputs of an implementation, by input code.")
    ] = None,
    outputs: Annotated[int, typer.Option(metavar="N", help="How many of the last columns are values.")] = 1,
    order: Annotated[str, typer.Option(metavar="O", help="Only any: the network holds for every order.")] = "any",
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Rows x, f, h, g: D^AD of the network is g for the loss derivative h.")
    ] = False,
    layers: Annotated[int | None, typer.Option(metavar="L", help="With --gradients: so many affine layers.")] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """A network over a format that returns exactly the values of a table, for every order of every sum.

    Inputs are finite, values finite or ±inf.  The network is verified at every input of the table before it is written.
    Exit code 0 when it is; 1 when two inputs of different values cannot be told apart, which are named; 3 when no
    network was found.  With --gradients reverse mode as executed returns the gradients of the table too: for relu, and
    with --order left-to-right for elu, gelu, swish, sigmoid and tanh.

    With several tables, or random ones, one network has an output for each, on detectors that are verified once, for
    every function of these inputs.
    """
    check_limits(timeout, jobs)
    if layers is not None and not gradients:
        raise UsageError("--layers is for networks with gradients: add --gradients")
    if gradients:
        from fpsmt.commands import represent_gradients, represent_vectors
        from fpsmt.commands.options import read_context
        from fpsmt.files.gradient_tables import read_vector_gradients

        if output is not None:
            _check_output(output)
        if tables is None or len(tables) != 1 or random is not None:
            raise UsageError("--gradients needs one table with rows x, f, h, g")
        ctx, saver = read_context("--format", format), Saver.of("represent", json_to, out, no_save)
        vectors = read_vector_gradients(tables[0], ctx.format)
        if vectors is not None:
            return represent_vectors.run(vectors, ctx, activation, order, layers, saver, timeout, output)
        return represent_gradients.run(tables[0], ctx, activation, order, layers, saver, timeout, output)
    if order != "any":
        raise UsageError(f"--order {order}: networks are made for every order at once; leave --order out, or write any")
    if outputs < 1:
        raise UsageError(f"--outputs {outputs}: a table has at least one value in each row")
    import fpsmt.rational  # noqa: F401  (functions rational(…) by name)
    from fpsmt.commands.options import read_context
    from fpsmt.commands.represent_tables import run_tables
    from fpsmt.files.representations import random_tables, read_implementation, read_table, read_tables
    from fpsmt.functions import function_named, implementation_named

    if (random is None) == (not tables):
        raise UsageError("name tables, or write --random N for N random ones")
    if (random is not None and random < 1) or seed < 0:
        raise UsageError(f"--random {random} --seed {seed}: write a positive number of tables, and a seed from 0 on")
    if output is not None:
        _check_output(output)
    ctx = read_context("--format", format)
    use = implementation_named(activation)
    if implementation is not None:
        use = read_implementation(implementation, function_named(activation), ctx.format)
    saver = Saver.of("represent", json_to, out, no_save)
    if random is not None:
        return run_tables(ctx, use, random_tables(ctx.format, random, seed, inputs), random, saver, timeout, output)
    assert tables is not None
    if len(tables) > 1:
        values = read_tables(tables, ctx.format, outputs)
        return run_tables(ctx, use, values, len(tables), saver, timeout, output)
    return _run(ctx, use, read_table(tables[0], ctx.format, outputs), saver, timeout, output)


def _check_output(path: str) -> None:
    """Before the work: the network can be written there."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"-o {path} cannot be written: name a file in a folder that exists and is writable")


def _run(ctx: Any, use: Any, values: Values, saver: Saver, timeout: float, output: str | None) -> int:
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.engines.representation import represent
    from fpsmt.kernel import verdict_to_json

    start = time.monotonic()
    printer = saver.printer
    try:
        with time_limit(timeout), Progress("looking for a network") as progress:
            found = represent(ctx, use, values, Options(timeout=timeout, progress=progress.update))
    except TimeLimit:
        return too_late(ctx, use, values, saver, timeout)
    verdict = found.verdict
    data = {
        **verdict_to_json(verdict), "command": "represent", "seconds": round(time.monotonic() - start, 4),
        "result": result(found, values),
    }  # fmt: skip
    printer(*lines(found, values))
    keep(saver, verdict.claim.hash, data, found.network, output)
    return EXIT_OF[verdict.name]


def keep(saver: Saver, key: str, data: dict[str, Any], network: SparseNetwork | None, output: str | None) -> None:
    """Writes the result and the network; a result with a large network only where a file is named."""
    from fpsmt.files.representations import save_representation

    saver.report(data)
    if network is None or network.parameters <= MOST_SAVED:
        saver.save(key, data)
    else:
        say("the result holds the whole network and is not saved: name files with -o and --json")
    if output is not None and network is not None:
        form = save_representation(network, output)
        say(f"saved {output}, the {form} form of the network")


def too_late(ctx: Any, use: Any, values: Values, saver: Saver, timeout: float) -> int:
    reason = f"the time limit of {timeout:g} s has passed"
    text = f"a network of {use.text} in {ctx} with the values of the table"
    saver.report({
        "command": "represent", "claim": {"text": text, "hash": values.digest}, "verdict": "unknown",
        "reason": reason, "seconds": round(timeout, 4), "evidence": None, "result": {},
    })  # fmt: skip
    saver.printer("represent unknown", f"reason: {reason}", "next step: raise --timeout")
    return UNKNOWN


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
