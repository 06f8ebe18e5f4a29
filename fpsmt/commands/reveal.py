"""``fpsmt reveal``: the summation tree of a routine that can only be called."""

from __future__ import annotations

import hashlib
import time
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
    time_limit,
)
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.engines.reveal import Revealed
    from fpsmt.engines.targets import Target


def reveal_command(
    routine: Annotated[
        str, typer.Argument(metavar="MODULE:CALLABLE", help="E.g. numpy:sum, numpy:dot, torch:sum, mymodule:mysum.")
    ],
    terms: Annotated[int | None, typer.Option(metavar="N", help="How many terms.")] = None,
    format: Annotated[str, typer.Option("--format", metavar="F", help="Format of the terms.")] = "float32",
    dot: Annotated[bool, typer.Option("--dot", help="It takes two arrays and sums their products.")] = False,
    matmul: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="M,K,N ROW,COL", help="It multiplies matrices: the sum of one element, of K terms."),
    ] = None,
    vectors: Annotated[int | None, typer.Option(metavar="V", help="Random vectors to compare.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the vectors, and of the choice of probes.")] = 0,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """The order in which a routine adds its terms, found by calling it.

    The tree is an order that other commands take (--order), with the accumulator and the use of fma.  It is compared
    with the routine on random vectors, bit for bit.  Exit code 0 when all agree; 3 when one differs, which is shown,
    or when nothing could be compared.
    """
    check_limits(timeout, jobs)
    target = _target(routine, terms, format, dot, matmul)
    saver = Saver.of("reveal", json_to, out, no_save)
    return _run(target, saver, timeout, vectors, seed)


def _target(routine: str, terms: int | None, format: str, dot: bool, matmul: tuple[str, str] | None) -> Target:
    from fpsmt.engines.targets import load_target, matmul_target
    from fpsmt.floats import format_named

    fmt = format_named(format)
    if matmul is not None:
        m, k, n = _integers("--matmul", matmul[0], 3)
        row, column = _integers("--matmul", matmul[1], 2)
        if terms not in (None, k):
            raise UsageError(f"--terms {terms}: an element of this product has K = {k} terms; leave --terms out")
        return matmul_target(routine, m, k, n, row, column, fmt)
    if terms is None:
        raise UsageError("reveal needs --terms N, the number of terms (or --matmul M,K,N ROW,COL)")
    return load_target(routine, terms, fmt, "dot" if dot else None)


def _integers(option: str, text: str, count: int) -> list[int]:
    words = text.split(",")
    if len(words) != count or not all(word.strip().isdigit() for word in words):
        raise UsageError(f"{option}: {text!r} is not {count} numbers; write e.g. --matmul 4,1000,8 0,3")
    return [int(word) for word in words]


def _run(target: Target, saver: Saver, timeout: float, vectors: int | None, seed: int) -> int:
    from fpsmt.display.progress import Progress
    from fpsmt.display.revealed import machine_line, report_lines
    from fpsmt.engines.reveal import reveal

    start = time.monotonic()
    text = f"the summation tree of {target.name} over {target.n} terms of {target.format}"
    key = hashlib.sha256(f"{text}, {target.kind}, {seed}".encode()).hexdigest()
    data: dict[str, Any] = {"command": "reveal", "claim": {"text": text, "hash": key}, "verdict": "unknown"}
    printer = saver.printer
    try:
        with time_limit(timeout), Progress(f"calling {target.name}"):
            found = reveal(target, target.n, target.format, target.kind, vectors, seed)
    except TimeLimit:
        reason = f"the time limit of {timeout:g} s was passed after {target.calls} calls"
        data |= {"reason": reason, "seconds": round(time.monotonic() - start, 4), "evidence": None, "result": {}}
        saver.report(data)
        printer("reveal unknown", f"reason: {reason}", "next step: raise --timeout or ask for fewer terms")
        return UNKNOWN
    data |= {
        "reason": _reason(found),
        "seconds": round(time.monotonic() - start, 4),
        "evidence": None,
        "result": _result(found),
    }
    saver.report(data)
    printer(machine_line(found), *report_lines(found))
    saver.save(key, data)
    return PROVED if found.agrees else UNKNOWN


def _reason(found: Revealed) -> str:
    if found.agrees is None:
        return "the tree has nodes of more than two terms whose arithmetic is not known, so it was not compared"
    if not found.agrees:
        return "the routine differs from the tree on the vector given"
    return f"a routine that can only be called is observed, not proved: {found.compared} results agree"


def _result(found: Revealed) -> dict[str, Any]:
    from fpsmt.networks.trees import tree_to_json

    contexts = None if found.contexts is None else [str(ctx) for ctx in found.contexts]
    out: dict[str, Any] = {
        "tree": None if found.tree is None else tree_to_json(found.tree),
        "order": None if found.order is None else str(found.order),
        "family": found.family,
        "shape": None if found.tree is not None else _shape_text(found.shape),
        "calls": found.calls,
        "verification_calls": found.verification_calls,
        "compared": found.compared,
        "agrees": found.agrees,
        "accumulator": None if found.accumulator is None else str(found.accumulator),
        "contexts": contexts,
        "products": found.products,
        "execution": None if found.execution is None else found.execution.to_json(),
        "from_zero": found.from_zero,
        "notes": list(found.notes),
        "mismatch": None,
    }
    if found.mismatch is not None:
        out["mismatch"] = {
            "terms": [x.hex() for x in found.mismatch.terms],
            "weights": None if found.mismatch.weights is None else [x.hex() for x in found.mismatch.weights],
            "routine": found.mismatch.routine.hex(),
            "tree": found.mismatch.model.hex(),
        }
    return out


def _shape_text(shape: Any) -> str:
    """Nested sums such as ``((0+1+2+3)+4)``; written without recursion, as trees are."""
    out: list[str] = []
    todo: list[Any] = [shape]
    while todo:
        node = todo.pop()
        if not isinstance(node, tuple):
            out.append(str(node))
            continue
        parts: list[Any] = ["("]
        for k, child in enumerate(node):
            parts += (["+"] if k else []) + [child]
        todo += reversed([*parts, ")"])
    return "".join(out)
