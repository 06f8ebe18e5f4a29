"""``fpsmt sum``: every reachable result of one sum or dot product, each with a schedule; how far it goes, where
these are too many (`fpsmt.commands.sum_far`)."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    PROVED,
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
    from fpsmt.commands.plots import Drawing
    from fpsmt.floats import Context, Float
    from fpsmt.networks.executions import Execution
    from fpsmt.networks.outcomes import Sum
    from fpsmt.networks.packed import PackedSum

NARROWER = "narrow --order, or ask for fewer terms"
LARGE = 4096  #: terms above which arrays are not turned into single values
OPTIONS = [
    "--format", "--order", "--fma", "--accumulator", "--products", "--bias", "--bias-place", "--dot", "--file",
    "--exact", "--extremes", "--trees", "--plot", "--json", "--timeout", "--jobs", "--out", "--no-save", "--help",
]  # fmt: skip


def sum_command(
    values: Annotated[list[str] | None, typer.Argument(metavar="V", help="The terms, or .npy files of terms.")] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format", metavar="F", help="Format and rounding, e.g. float16 or float8_e4m3fn:saturate.  Required."
        ),
    ] = "",
    order: Annotated[
        str,
        typer.Option(
            metavar="O",
            help="any, contiguous, sequential, left-to-right, right-to-left, pairwise, lanes:K, blocks:K, depth:H, "
            "a tree such as ((0+1)+2), or a union A|B.",
        ),
    ] = "any",
    fma: Annotated[str, typer.Option(metavar="M", help="never, always or any (with --dot).")] = "never",
    accumulator: Annotated[str | None, typer.Option(metavar="G", help="Format and rounding of additions.")] = None,
    products: Annotated[str | None, typer.Option(metavar="H", help="The same of products, or exact.")] = None,
    bias: Annotated[str | None, typer.Option(metavar="V", help="One more term, whose place is --bias-place.")] = None,
    bias_place: Annotated[str, typer.Option(metavar="P", help="last, first or any.")] = "last",
    dot: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="W X", help="Σ wᵢxᵢ instead: two .npy files, or lists such as 1,2^-3."),
    ] = None,
    file: Annotated[list[str] | None, typer.Option("--file", metavar="X.npy", help="A file of terms.")] = None,
    extremes: Annotated[
        bool, typer.Option("--extremes", help="The least and the greatest result only: exact, or a bracket.")
    ] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Refuse numbers that are not values of the format.")] = False,
    trees: Annotated[bool, typer.Option("--trees", help="Draw the tree of every outcome, whole.")] = False,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Plot the results: FILE.svg, FILE.html (with two trees), or - here."),
    ] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 60.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Every result that a sum can reach, with one schedule for each.

    Where these are too many: the exact extremes (up to about 22 terms in any order), else a bracket, which is bounds
    for every order and the farthest results found; the first word of the output says which.

    Numbers: decimals, hex floats (0x1.8p3), powers (2^-24), quotients (1/3), inf, nan, -0.

    \b
    Examples:
      fpsmt sum --format float16 --order sequential 32000 32000 -32000
      fpsmt sum --format float32 --fma any --dot 1,0x1.0008p0 -0x1.001p0,0x1.0008p0
    """
    from fpsmt.commands.plots import Drawing
    from fpsmt.commands.sum_far import run_bracket
    from fpsmt.networks.outcomes import Sum

    check_limits(timeout, jobs)
    drawing = Drawing(trees, plot)
    drawing.check()
    start = time.monotonic()
    terms = list(values or [])
    for word in terms:
        if word.startswith("--") or re.fullmatch(r"-[a-zA-Z]", word):
            name = word.partition("=")[0]
            close = difflib.get_close_matches(name, OPTIONS, 1, 0.75)
            known = f"did you mean {close[0]}?" if close else "see fpsmt sum --help"
            raise UsageError(f"no such option {name}: {known}")
    if not format:
        raise UsageError("sum needs --format, e.g. --format float16")
    execution = read_execution(order, fma, accumulator, products, bias_place)
    terms += file or []
    ctx = read_context("--format", format)
    problem = _large(ctx, execution, terms, dot, bias, exact) or _problem(ctx, execution, terms, dot, bias, exact)
    if not problem.is_dot:
        if fma != "never":
            say("note: --fma has no effect on a sum without products; use --dot")
        if products is not None:
            say("note: --products has no effect on a sum without products; use --dot")
    saver = Saver.of("sum", json_to, out, no_save)
    if not isinstance(problem, Sum):
        return run_bracket(
            problem, saver, timeout, drawing, lambda why, what: _unknown(problem, saver, start, why, what)
        )
    return _run(problem, saver, timeout, drawing, extremes)


# -- the question -------------------------------------------------------------------------------------------


def _problem(
    ctx: Context, execution: Execution, words: list[str], dot: tuple[str, str] | None, bias: str | None, exact: bool
) -> Sum:
    from fpsmt.files.arrays import Number, read_vector
    from fpsmt.floats import read_number
    from fpsmt.networks.outcomes import Sum

    reader = Reader(ctx.format, exact)

    def vector(text: str, where: str) -> list[Float]:
        return [reader(written, x, where) for written, x in read_vector(text, ctx.format, where)]

    terms: tuple[Any, ...]
    if dot is not None:
        if words:
            raise UsageError(f"unexpected {words[0]!r}: give the terms as values or by --dot, not both")
        w, x = (vector(text, f"--dot, {name}") for text, name in zip(dot, ("W", "X"), strict=True))
        if len(w) != len(x):
            raise UsageError(f"--dot: W has {len(w)} elements and X has {len(x)}: they must have one length")
        terms = tuple(zip(w, x, strict=True))
    else:
        found: list[Float] = []
        for word in words:
            if word.endswith(".npy"):
                found += vector(word, "terms")
            else:
                number: Number = read_number(word)
                found.append(reader(word, number, "terms"))
        terms = tuple(found)
    if not terms:
        raise UsageError("no terms: a sum needs at least one value (an empty sum is +0 and has no order)")
    last = None if bias is None else reader(bias, read_number(bias), "--bias")
    reader.tell()
    return Sum(ctx, terms, last, execution)


def _large(
    ctx: Context, execution: Execution, words: list[str], dot: tuple[str, str] | None, bias: str | None, exact: bool
) -> PackedSum | None:
    """The sum as arrays, when all its terms are in one .npy file (two of a dot product) and there are very many."""
    from fpsmt.files.arrays import load_array
    from fpsmt.files.large import read_large
    from fpsmt.floats import read_number
    from fpsmt.networks.packed import PackedSum

    paths = [*dot] if dot is not None and not words else [] if dot is not None else words
    if len(paths) != (1 if dot is None else 2) or not all(path.endswith(".npy") for path in paths):
        return None
    if load_array(Path(paths[0])).size <= LARGE:
        return None
    reader = Reader(ctx.format, exact)
    arrays = []
    for path in paths:
        carriers, some, count = read_large(path, ctx.format)
        if exact and some:
            raise UsageError(f"{path}: {some[0][0]} is not a value of {ctx.format}; the nearest is {some[0][1]!r}")
        reader.rounded += some
        reader.more += count - len(some)
        arrays.append(carriers)
    if len({len(a) for a in arrays}) > 1:
        raise UsageError(
            f"--dot: W has {len(arrays[0])} elements and X has {len(arrays[1])}: they must have one length"
        )
    last = None if bias is None else reader(bias, read_number(bias), "--bias")
    reader.tell()
    return PackedSum.of(ctx, arrays[-1], arrays[0] if dot is not None else None, last, execution)


# -- the answer ---------------------------------------------------------------------------------------------


def _run(problem: Sum, saver: Saver, timeout: float, drawing: Drawing, extremes: bool) -> int:
    """The set of outcomes; else the exact extremes; else a bracket.  The first two get a third of the time each."""
    from fpsmt.commands.sum_far import rehearse, run_bracket, run_extremes
    from fpsmt.display.outcomes import FEW, SHORT_TREE, OutcomesView, show_outcomes
    from fpsmt.display.progress import Progress
    from fpsmt.engines.sums import outcomes
    from fpsmt.kernel import verdict_to_json
    from fpsmt.networks.packed import PackedSum
    from fpsmt.networks.trees import tree_to_json

    start = time.monotonic()
    proved, why = None, ""
    if not extremes:
        try:
            with Progress(f"summing {problem.n} terms in every allowed order"):
                rehearse(problem, outcomes)
                with time_limit(timeout / 3):
                    proved = outcomes(problem)
        except TimeLimit:
            why = f"the exact set of outcomes took more than {timeout / 3:.3g} s"
        except Unsupported as error:
            why = str(error)
    if proved is None:
        code = run_extremes(problem, saver, timeout / 3, drawing, why)
        if code is not None:
            return code
        try:
            packed = PackedSum.pack(problem)
        except Unsupported as error:
            return _unknown(problem, saver, start, str(error), NARROWER)
        left = max(timeout - (time.monotonic() - start), 0.1)
        return run_bracket(packed, saver, left, drawing, lambda why, what: _unknown(problem, saver, start, why, what))
    view: OutcomesView = show_outcomes(proved)
    data = {
        "command": "sum",
        **verdict_to_json(proved),
        "seconds": round(time.monotonic() - start, 4),
        "result": {
            "exact": True,
            "outcomes": [
                {"value": value.hex, "decimal": value.decimal, "bits": value.bits, "schedule": tree_to_json(tree)}
                for value, tree in view.outcomes
            ],
        },
    }
    saver.report(data)
    printer = saver.printer
    printer(view.machine_line, _count(view) + ": " + problem.text, *view.table())
    if drawing.trees or len(view.outcomes) <= FEW:
        printer(*view.trees(10**6 if drawing.trees else SHORT_TREE))
    pair = view.far_apart
    drawing.save(proved, saver, pair and (problem, view.outcomes[pair[0]][1], view.outcomes[pair[1]][1]))
    _save(problem, saver, view, proved.claim.hash, data)
    return PROVED


def _count(view: Any) -> str:
    return "1 outcome" if len(view.outcomes) == 1 else f"{len(view.outcomes)} outcomes"


def _save(problem: Sum, saver: Saver, view: Any, key: str, data: dict[str, Any]) -> None:
    from fpsmt.files.reproduce import script

    path = saver.save(key, data)
    if path is not None:
        text = script(problem, view.outcomes, data["claim"]["text"])
        saver.save_script(path.with_suffix(".py"), text, "every outcome")


def _unknown(problem: Sum | PackedSum, saver: Saver, start: float, reason: str, next_step: str) -> int:
    from fpsmt.claims.extremes import packed_to_json
    from fpsmt.claims.sums import sum_to_json
    from fpsmt.networks.outcomes import Sum

    statement = sum_to_json(problem) if isinstance(problem, Sum) else packed_to_json(problem)
    key = hashlib.sha256(json.dumps(statement, sort_keys=True).encode()).hexdigest()
    data = {
        "command": "sum",
        "claim": {"text": f"{{result : ∃ schedule}} for {problem.text}", "hash": key},
        "verdict": "unknown",
        "reason": reason,
        "next_step": next_step,
        "seconds": round(time.monotonic() - start, 4),
        "evidence": None,
        "result": {"exact": False},
    }
    saver.report(data)
    saver.printer("outcomes unknown", f"reason: {reason}", f"next step: {next_step}")
    saver.save(key, data)
    return UNKNOWN
