"""``fpsmt sum`` when the set of outcomes is too large: exact extremes, else a bracket."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fpsmt.commands.common import PROVED, UNKNOWN, Saver, TimeLimit, say, time_limit
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.commands.plots import Drawing
    from fpsmt.floats import Float
    from fpsmt.networks.outcomes import Sum
    from fpsmt.networks.packed import PackedSum

LONG_TREE = 60  #: characters of a schedule that are shown
REHEARSED = 4  #: terms
SEARCH = 5.0  #: seconds for which orders are searched, at most


def _word(value: Float | None) -> str:
    from fpsmt.display.outcomes import machine_word

    return "nan" if value is None else machine_word(value)


def _memory() -> str:
    """The most memory that this process has used."""
    try:
        import resource
    except ImportError:
        return "memory unknown"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{peak / (1 << 20 if sys.platform == 'darwin' else 1 << 10):.0f} MiB"


def rehearse(problem: Sum, solve: Callable[[Sum], Any]) -> None:
    """Solves for a few of the terms: compiles the loops, which the first time takes longer than many a sum."""
    few = problem.terms[:REHEARSED]
    if len(few) < problem.n:
        with suppress(Unsupported, UsageError):  # families without trees of so few terms, for instance
            solve(replace(problem, terms=few))


def run_extremes(problem: Sum, saver: Saver, timeout: float, drawing: Drawing, why: str = "") -> int | None:
    """Reports the exact extremes, with their trees if asked to; None, after saying why, when they are out of reach."""
    from fpsmt.display.progress import Progress
    from fpsmt.engines.extremes import extremes

    start = time.monotonic()
    if why:
        say(f"{why}; trying exact extremes")
    try:
        with Progress(f"extremes of {problem.n} terms in every allowed order"):
            rehearse(problem, extremes)
            with time_limit(timeout):
                proved = extremes(problem)
    except TimeLimit:
        say(f"exact extremes took more than {timeout:.3g} s")
        return None
    except Unsupported as error:
        say(str(error))
        return None
    _report_extremes(problem, proved, saver, start, drawing)
    return PROVED


def _report_extremes(problem: Sum, proved: Any, saver: Saver, start: float, drawing: Drawing) -> None:
    from fpsmt.display.trees import side_by_side_lines
    from fpsmt.files.reproduce import script
    from fpsmt.kernel import verdict_to_json
    from fpsmt.networks.trees import tree_from_json, tree_text

    claim, found = proved.claim, proved.evidence.found
    schedules: dict[str, Any] = found["schedules"]
    n = problem.n + (problem.bias is not None)
    trees = {end: tree_from_json(witness["schedule"], n) for end, witness in schedules.items()}
    ends = {end: problem.evaluate(tree) for end, tree in trees.items()}
    seconds = time.monotonic() - start
    data = {
        "command": "sum",
        **verdict_to_json(proved),
        "seconds": round(seconds, 4),
        "result": {
            "exact": True,
            "low": "nan" if claim.low is None else claim.low.hex,
            "high": "nan" if claim.high is None else claim.high.hex,
            "nan": claim.nan_reachable,
            "schedules": {end: witness["schedule"] for end, witness in schedules.items()},
        },
    }
    saver.report(data)
    nan = "yes" if claim.nan_reachable else "no"
    lines = [f"extremes exact {_word(claim.low)} {_word(claim.high)} nan={nan}", proved.claim.text]
    for end, tree in trees.items():
        text = tree_text(tree)
        shown = text if len(text) <= LONG_TREE else text[: LONG_TREE - 3] + "..."
        lines.append(f"  {end:<4} {ends[end].decimal} = {ends[end].hex} = {ends[end].bits}  {shown}")
    lines.append(f"{seconds:.2f} s, {_memory()}, {found['splits']} splits of the terms")
    pair = (problem, trees["low"], trees["high"]) if {"low", "high"} <= trees.keys() else None
    if drawing.trees and pair is not None:
        lines += ["", *side_by_side_lines(*pair)]
    saver.printer(*lines)
    drawing.save(proved, saver, pair)
    path = saver.save(proved.claim.hash, data)
    if path is not None:
        text = script(problem, [(ends[end], tree) for end, tree in trees.items()], data["claim"]["text"])
        saver.save_script(path.with_suffix(".py"), text, "both ends")


def run_bracket(
    problem: PackedSum, saver: Saver, timeout: float, drawing: Drawing, timed_out: Callable[[str, str], int]
) -> int:
    """Reports bounds for every schedule and the farthest results found; `timed_out(reason, next step)` reports that
    the time was too short."""
    from fpsmt.display.progress import Progress
    from fpsmt.networks.brackets import bracket

    start = time.monotonic()
    try:
        with time_limit(timeout), Progress(f"bounds of {problem.n} terms in every allowed order"):
            found = bracket(problem, deadline=start + min(SEARCH, timeout / 3))
    except TimeLimit:
        return timed_out("the time limit was passed", "raise --timeout")
    code = _report_bracket(problem, found, saver, start)
    drawing.save(found, saver)
    return code


def _report_bracket(problem: PackedSum, found: Any, saver: Saver, start: float) -> int:
    from fpsmt import kernel
    from fpsmt.claims.extremes import SumWithin, packed_to_json
    from fpsmt.commands.common import short_hash
    from fpsmt.kernel import verdict_to_json

    outer = found.outer
    verdict = None
    if not outer.nan and outer.low is not None and outer.high is not None:
        verdict = kernel.apply("a-priori bounds", SumWithin(problem, outer.low, outer.high))
    recipes = {
        end: recipe.to_json()
        for end, recipe in (
            ("low", found.found.low and found.found.low[1]),
            ("high", found.found.high and found.found.high[1]),
            ("nan", found.found.nan),
        )
        if recipe
    }
    ends = {"low": found.reached_low, "high": found.reached_high}
    seconds = time.monotonic() - start
    nan = "reached" if found.found.nan else "possible" if outer.nan else "impossible"
    result = {
        "exact": found.exact,
        "low": "nan" if outer.low is None else outer.low.hex,
        "high": "nan" if outer.high is None else outer.high.hex,
        "reached_low": "nan" if found.reached_low is None else found.reached_low.hex,
        "reached_high": "nan" if found.reached_high is None else found.reached_high.hex,
        "ratio": found.ratio if found.ratio < float("inf") else "inf",
        "nan": nan,
        "method": outer.method,
        "recipes": {
            end: {"recipe": recipe, "bits": "nan" if end == "nan" else ends[end].bits}  # type: ignore[union-attr]
            for end, recipe in recipes.items()
        },
    }
    if verdict is None:
        statement = packed_to_json(problem)
        text = f"the bounds of every schedule, for {problem.text}"
        data: dict[str, Any] = {
            "claim": {"text": text, "hash": short_hash(str(statement))},
            "verdict": "unknown",
            "reason": f"NaN {'is reached' if found.found.nan else 'may occur'}: {outer.method}",
            "evidence": None,
        }
    else:
        data = verdict_to_json(verdict)
    data = {"command": "sum", **data, "seconds": round(seconds, 4), "result": result}
    saver.report(data)
    words = [_word(outer.low), _word(outer.high), "reached", _word(found.reached_low), _word(found.reached_high)]
    lines = [" ".join(["bracket", *words, "ratio", f"{found.ratio:.6g}"]), f"{problem.n} terms: {problem.text}"]
    lines.append(f"  every schedule: [{_word(outer.low)}, {_word(outer.high)}], NaN is {nan} ({outer.method})")
    for end, reached in (("low", found.found.low), ("high", found.found.high)):
        if reached is not None:
            value, recipe = reached
            lines.append(f"  reached {end}: {value.decimal} = {value.hex} = {value.bits}  by {recipe}")
    lines.append(f"{seconds:.2f} s, {_memory()}, {found.found.tried} orders tried")
    saver.printer(*lines)
    saver.save(data["claim"]["hash"], data)
    return PROVED if data["verdict"] == "proved" else UNKNOWN
