"""``fpsmt replay``: executes the counterexamples and schedules of a result file again, twice over."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    INTERNAL,
    PROVED,
    UNKNOWN,
    JsonOption,
    Saver,
    TimeLimit,
    TimeoutOption,
    check_limits,
    say,
    time_limit,
)
from fpsmt.errors import FpsmtError, UsageError

if TYPE_CHECKING:
    from fpsmt.claims import Claim
    from fpsmt.files.results import Record
    from fpsmt.floats import Float
    from fpsmt.networks.outcomes import Sum
    from fpsmt.networks.trees import Tree


@dataclass(frozen=True)
class Run:
    """One execution: whether it came out as stored, lines about it, its tree as lines; the sum and its schedule."""

    name: str
    reproduced: bool
    lines: tuple[str, ...]
    tree: tuple[str, ...] = ()
    sum: tuple[Sum, Tree] | None = None


def replay_command(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="A file that another command saved.")],
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
) -> int:
    """Runs every schedule and counterexample of a result file again.

    Each is run by the reference interpreter and, where it is a sum, a second time by numpy (or by exact fractions
    where numpy has no such format), with the value at each node.  Exit code 0 when everything is reproduced bit for
    bit, 4 when not.
    """
    from fpsmt.display.progress import Progress
    from fpsmt.files.results import read_records

    check_limits(timeout, jobs)
    saver = Saver.of("replay", json_to, "", no_save=True)
    start = time.monotonic()
    data, records = read_records(Path(result))
    runs: list[Run] = []
    compared: list[str] = []
    late = False
    with Progress("replaying") as progress:
        try:
            with time_limit(timeout):
                for record in records:
                    progress.update(f"replaying {record.name}, {len(runs)} runs done")
                    some, lines = _replay(record)
                    runs += some
                    compared += lines
        except TimeLimit:
            late = True
    if not runs and not late:
        raise UsageError(f"{result} holds no counterexample and no schedule to replay: try fpsmt check")
    good = sum(run.reproduced for run in runs)
    bad = good < len(runs)
    claim = data.get("claim") or {}
    reason = f"the time limit of {timeout:g} s was passed"
    saver.report(
        {
            "command": "replay",
            "claim": {"text": str(claim.get("text", "")), "hash": str(claim.get("hash", ""))},
            "verdict": "refuted" if bad else "unknown" if late else "proved",
            **({"reason": reason} if late else {}),
            "seconds": round(time.monotonic() - start, 4),
            "evidence": None,
            "result": {
                "runs": [{"name": r.name, "reproduced": r.reproduced, "lines": [*r.lines, *r.tree]} for r in runs],
                "compared": compared,
            },
        }
    )
    printer = saver.printer
    printer(f"replay {good} of {len(runs)} reproduced")
    for run in runs:
        printer("", f"{run.name}: {'reproduced' if run.reproduced else 'NOT REPRODUCED'}", *run.lines, *run.tree)
    printer(*compared)
    if bad:
        say(f"{len(runs) - good} of {len(runs)} executions of {result} are not reproduced")
        return INTERNAL
    if late:
        say(reason)
        return UNKNOWN
    return PROVED


def _replay(record: Record) -> tuple[list[Run], list[str]]:
    """What a record's executions give, and where the least and the greatest of them part."""
    if record.verdict not in ("proved", "refuted"):
        return [], []
    claim = record.claim()
    runs = [_run(record, claim, bits, schedule) for bits, schedule in record.schedules(claim)]
    runs += [_end(record, claim, *end) for end in record.ends(claim)]
    pair = _far_apart(runs)
    runs = [replace(run, tree=()) if any(run is one for one in pair) else run for run in runs]
    lines = _side_by_side(record.name, *pair)
    runs += [_gradient(record, claim, stored) for stored in record.gradients(claim)]
    if record.verdict == "refuted":
        runs.append(_counterexample(record, claim, show=not runs))
        lines = lines or _prediction(record, claim)
    return runs, lines


def _far_apart(runs: list[Run]) -> list[Run]:
    """Of the runs of one sum two whose results differ: the least and the greatest of many; or none."""
    found: dict[Float, Run] = {}
    for run in runs:
        if run.sum is not None:
            found.setdefault(run.sum[0].evaluate(run.sum[1]), run)
    numbers = sorted((x for x in found if not x.is_nan), key=lambda x: x.ordinal)
    ends = [*numbers[:1], *(numbers[1:][-1:] or [x for x in found if x.is_nan])]
    pair = [found[x] for x in ends]
    return pair if len(pair) == 2 and len({run.sum[0] for run in pair if run.sum}) == 1 else []


def _side_by_side(name: str, *pair: Run) -> list[str]:
    from fpsmt.display.trees import side_by_side_lines

    sums = [run.sum for run in pair if run.sum is not None]
    if not sums:
        return []
    lines = side_by_side_lines(sums[0][0], sums[0][1], sums[1][1])
    return ["", f"{name}, where two schedules part:", *(f"  {line}".rstrip() for line in lines)]


def _prediction(record: Record, claim: Claim) -> list[str]:
    """Where the two executions of a network part."""
    from fpsmt.claims.predictions import OverExecutions
    from fpsmt.display.trees import side_by_side_lines

    if not isinstance(claim, OverExecutions):
        return []
    try:
        found = claim.first_parting(record.data["counterexample"])
    except FpsmtError:  # `_counterexample` has said so
        return []
    if found is None:
        return []
    head = f"{record.name}, the first sum with two results:"
    return ["", head, *(f"  {line}".rstrip() for line in side_by_side_lines(*found, titles=("under s:", "under t:")))]


def _counterexample(record: Record, claim: Claim, show: bool) -> Run:
    """The whole counterexample by reference: does it violate the claim?  (The trees under s and t: `_prediction`.)"""
    try:
        replay = claim.replay(record.data["counterexample"])
    except FpsmtError as error:
        return Run(f"{record.name}, counterexample", False, (f"  {error}",))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{record.name}: the counterexample cannot be read: {error!r}") from None
    said = f"  it {'violates' if replay.violates else 'does not violate'} {claim.text}"
    lines = [f"  {line}" for line in takewhile(lambda line: line != "under s:", replay.lines)] if show else []
    return Run(f"{record.name}, counterexample", replay.violates, (*lines, said))


def _run(record: Record, claim: Any, bits: str | None, schedule: Any) -> Run:
    """One schedule of a sum, by reference and by a second opinion."""
    from fpsmt.claims.sums import replay_schedule
    from fpsmt.display.trees import tree_lines
    from fpsmt.files.reproduce import second_opinion

    try:
        value, tree, lines = replay_schedule(claim.problem, schedule)
        second, how = second_opinion(claim.problem, tree)
    except FpsmtError as error:
        return Run(f"{record.name}, schedule", False, (f"  {error}",))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{record.name}: a schedule cannot be read: {error!r}") from None
    reproduced = value == second and bits in (None, value.bits)
    opinions = [f"  stored     {bits}"] if bits is not None else []
    opinions += [f"  reference  {value.bits}", f"  again      {second.bits} ({how})"]
    shown = tree_lines(claim.problem, tree)
    return Run(
        f"{record.name}, result {value.decimal}",
        reproduced,
        (*opinions, f"  {lines[0]}"),
        tuple(f"  {line}" for line in shown),
        (claim.problem, tree),
    )


def _gradient(record: Record, claim: Any, stored: Any) -> Run:
    """An execution of both passes of reverse mode."""
    try:
        value, lines = claim.executed(stored, "again")
        good = [x.hex for x in value] == stored["gradient"]
        name = f"{record.name}, gradient {', '.join(x.decimal for x in value)}"
        return Run(name, good, tuple(f"  {x}" for x in lines))
    except FpsmtError as error:
        return Run(f"{record.name}, gradient", False, (f"  {error}",))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{record.name}: an execution cannot be read: {error!r}") from None


def _end(record: Record, claim: Any, end: str, bits: str | None, how: Any) -> Run:
    """The schedule that reaches an end of a sum."""
    from fpsmt.claims import SumExtremes
    from fpsmt.claims.extremes import read_inputs
    from fpsmt.files.reproduce import second_opinion
    from fpsmt.networks.trees import tree_from_json

    name = f"{record.name}, {end}"
    try:
        if not isinstance(claim, SumExtremes):
            value, lines = claim.run(how)
            good = value.is_nan if end == "nan" else value.bits == bits
            return Run(name, good, (f"  stored     {bits}", f"  again      {value.bits}", *(f"  {x}" for x in lines)))
        value, lines = claim.reaches(end, how)
        inputs = read_inputs(claim.problem, how)
        tree = tree_from_json(how["schedule"])
        second, opinion = second_opinion(inputs, tree)
    except FpsmtError as error:
        return Run(name, False, (f"  {error}",))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{record.name}: a schedule cannot be read: {error!r}") from None
    opinions = (f"  reference  {value.bits}", f"  again      {second.bits} ({opinion})")
    shown = tuple(f"  {line}" for line in lines)
    return Run(f"{name} {value.decimal}", value == second, (*opinions, *shown[:1]), shown[1:], (inputs, tree))
