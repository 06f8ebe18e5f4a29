"""``fpsmt check``: verifies the evidence of a result file again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fpsmt.commands.common import (
    PROVED,
    REFUTED,
    UNKNOWN,
    JsonOption,
    Saver,
    TimeLimit,
    TimeoutOption,
    check_limits,
    raise_interruption,
    time_limit,
)
from fpsmt.errors import EvidenceError, FpsmtError

if TYPE_CHECKING:
    from fpsmt.files.results import Record

VERIFIED, FAILED, NOTHING = "verified", "failed", "unknown"


def check_command(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="A file that another command saved.")],
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
) -> int:
    """Verifies every verdict of a result file again, from its statement: rules are applied, executions replayed.

    Exit code 0 when all evidence holds, 1 when some does not, 3 when there was only the word unknown.
    """
    from fpsmt.display.progress import Progress
    from fpsmt.files.results import read_records

    check_limits(timeout, jobs)
    saver = Saver.of("check", json_to, "", no_save=True)
    start = time.monotonic()
    data, records = read_records(Path(result))
    found: list[tuple[str, str, str]] = []
    late = False
    with Progress("checking") as progress:
        try:
            with time_limit(timeout):
                for record in records:
                    progress.update(f"checking {record.name}, {len(found)} of {len(records)} done")
                    found.append((*_check(record), record.name))
        except TimeLimit:
            late = True
    counts = {word: sum(f[0] == word for f in found) for word in (VERIFIED, FAILED, NOTHING)}
    reason = f"the time limit of {timeout:g} s was passed after {len(found)} of {len(records)} verdicts" if late else ""
    if counts[FAILED]:
        code, verdict = REFUTED, "refuted"
    elif late or not counts[VERIFIED]:
        code, verdict = UNKNOWN, "unknown"
        reason = reason or "the file holds no evidence: all its verdicts are unknown"
    else:
        code, verdict = PROVED, "proved"
    claim = data.get("claim") or {}
    out = {
        "command": "check",
        "claim": {"text": str(claim.get("text", "")), "hash": str(claim.get("hash", ""))},
        "verdict": verdict,
        **({"reason": reason} if verdict == "unknown" else {}),
        "seconds": round(time.monotonic() - start, 4),
        "evidence": None,
        "result": {"checked": [{"name": n, "outcome": word, "detail": detail} for word, detail, n in found]},
    }
    saver.report(out)
    printer = saver.printer
    printer(f"check {counts[VERIFIED]} verified {counts[FAILED]} failed {counts[NOTHING]} unknown")
    printer(*(f"{word:<9} {name}: {detail}" for word, detail, name in found))
    if verdict == "unknown":
        printer(f"unknown: {reason}")
    return code


def _check(record: Record) -> tuple[str, str]:
    """What became of one verdict, and a line about it."""
    from fpsmt.kernel import check_verdict

    if record.verdict == "unknown":
        return NOTHING, str(record.data.get("reason") or "no reason is recorded").strip().splitlines()[-1]
    try:
        verdict = check_verdict(record.data)
        record.check_result(verdict.claim)
        for bits, schedule in record.schedules(verdict.claim):
            _check_schedule(verdict.claim, bits, schedule)
    except FpsmtError as error:
        return FAILED, " ".join(str(error).split())
    except Exception as error:  # damaged evidence can break a rule in any way; it establishes nothing then
        raise_interruption(error)
        if os.environ.get("FPSMT_DEBUG") == "1":
            raise
        return FAILED, f"the evidence cannot be applied: {type(error).__name__}: {error}"
    return VERIFIED, f"{verdict.name} by {verdict.how}"


def _check_schedule(claim: object, bits: str | None, schedule: object) -> None:
    from fpsmt.claims import SumInvariant, SumOutcomes
    from fpsmt.claims.sums import replay_schedule

    if isinstance(claim, SumInvariant | SumOutcomes):
        value = replay_schedule(claim.problem, schedule)[0]
        if bits is not None and value.bits != bits:
            raise EvidenceError(f"a schedule is listed with the result {bits} and gives {value.bits}")
