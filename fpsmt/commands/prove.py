"""``fpsmt prove``: runs proof scripts, says what became of each obligation, and keeps every verdict."""

from __future__ import annotations

import hashlib
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    INTERNAL,
    INTERRUPTED,
    PROVED,
    REFUTED,
    RESULTS,
    UNKNOWN,
    JobsOption,
    JsonOption,
    NoSaveOption,
    OutOption,
    Printer,
    Saver,
    TimeoutOption,
    check_limits,
)
from fpsmt.errors import FpsmtError, UsageError

if TYPE_CHECKING:
    from fpsmt.claims import Obligation
    from fpsmt.proving import Result

SAVE_SECONDS = 10.0  #: between saves while obligations are running


def prove_command(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="PATH|SPEC-ID", help="Proof scripts, folders of them, or specs.")
    ] = None,
    case: Annotated[
        str, typer.Option("--case", metavar="WORDS", help="Only the cases whose names have all these words.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also the cases that take long.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Say what would be proved, and prove nothing.")] = False,
    progress: Annotated[bool, typer.Option("--progress", help="Progress on stderr even if it is no terminal.")] = False,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 60.0,
    jobs: JobsOption = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Runs proof scripts: all of proofs/, or what is named.

    A line for each obligation as it ends: verdict, spec, case, how, seconds.  --timeout is for each obligation.
    Exit code 0 when every obligation has the verdict that its spec expects, 1 when some have another, 3 when those
    are only unknown.  Ctrl-C stops within two seconds and keeps what is done.
    """
    processes = check_limits(timeout, jobs)
    obligations = _chosen(_load(list(targets or []), everything), case)
    saver = Saver.of("prove", json_to, out, no_save or listing)
    if listing:
        return _list(obligations, saver)
    return _Session(obligations, saver, timeout, processes, progress).run()


def _load(targets: Sequence[str], everything: bool) -> list[Obligation]:
    from fpsmt.proving import load

    if not all(target.strip() for target in targets):
        raise UsageError("an empty word: name a proof script, a folder of them, or a spec")
    try:
        found = load(targets, everything)
    except FpsmtError:
        raise
    except (Exception, SystemExit) as error:  # scripts are programs: anything can happen when they are imported
        last = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{last.filename}:{last.lineno}"
        if isinstance(error, SyntaxError):
            at = f"{error.filename}:{error.lineno}"
        raise UsageError(f"loading the proof scripts failed at {at}: {type(error).__name__}: {error}") from error
    if not found:
        raise UsageError(f"nothing to prove in {' '.join(targets) or 'proofs/'}: no script there discharges a spec")
    return found


def _chosen(obligations: list[Obligation], case: str) -> list[Obligation]:
    """Those whose case has all these words in its name."""
    words = set(case.split())
    found = [o for o in obligations if words <= set(o.case.name.split())]
    if not found:
        raise UsageError(f"--case {case!r}: none of the {len(obligations)} cases has these words; see --list")
    return found


def _list(obligations: Sequence[Obligation], saver: Saver) -> int:
    """The obligations with their statements, and nothing proved."""
    printer = saver.printer
    saver.report(
        {
            "command": "prove",
            "claim": {"text": f"{len(obligations)} obligations are listed", "hash": _key(obligations)},
            "result": {
                "obligations": [
                    {"spec": o.spec.id, "case": o.case.name, "expected": o.case.expected, "source": o.spec.source}
                    for o in obligations
                ]
            },
        }
    )
    printer(f"list {len(obligations)} obligations")
    last = ""
    for obligation in obligations:
        if obligation.spec.id != last:
            last = obligation.spec.id
            statement = " ".join(obligation.spec.statement.split())
            printer(f"{last} ({obligation.spec.source})", *([f"  {statement}"] if statement else []))
        printer(f"    {obligation.case.name or '(one case)'}: {obligation.case.expected}")
    return PROVED


def _key(obligations: Sequence[Obligation]) -> str:
    return hashlib.sha256("\n".join(sorted(o.name for o in obligations)).encode()).hexdigest()


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    """Another handler of Ctrl-C and of SIGTERM, which acts like Ctrl-C so that workers never outlive the command."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _undisturbed() -> AbstractContextManager[None]:
    """No Ctrl-C while results are written."""
    return _handling(signal.SIG_IGN)


class _Session:
    """One run: what came out so far, printed and saved as it comes."""

    def __init__(
        self, obligations: list[Obligation], saver: Saver, timeout: float, jobs: int, progress: bool
    ) -> None:
        self.obligations, self.saver, self.timeout, self.jobs = obligations, saver, timeout, jobs
        self.lines = progress
        self.printer: Printer = saver.printer
        self.results: list[Result] = []
        self.start = self.saved = time.monotonic()
        self.interrupted = False
        self.progress: Any = None

    def run(self) -> int:
        from fpsmt.display.progress import Progress
        from fpsmt.engines import Options
        from fpsmt.proving import run

        self.printer(f"prove {len(self.obligations)} obligations")
        self.progress = Progress("starting", lines=True if self.lines and not sys.stderr.isatty() else None)
        try:
            with self.progress, _handling(self._stop):
                run(self.obligations, Options(timeout=self.timeout, jobs=self.jobs), self._ended, self._tick)
        except KeyboardInterrupt:
            self.interrupted = True
        with _undisturbed():
            return self._finish()

    def _stop(self, *_: object) -> None:
        """Ctrl-C: `_tick` acts on it within half a second, or a second Ctrl-C at once.

        Raising here would not do: Python swallows exceptions that are raised while a process forks.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def _ended(self, result: Result) -> None:
        self.results.append(result)
        self.progress.clear()
        self.printer(_line(result))
        if self.printer.closed:  # nobody reads any more: stop, and keep what is done
            raise KeyboardInterrupt

    def _tick(self, running: list[Obligation]) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        names = ", ".join(o.name for o in running[:3]) + (", …" if len(running) > 3 else "")
        self.progress.update(f"{len(self.results)} of {len(self.obligations)} done, running {names}")
        if time.monotonic() - self.saved > SAVE_SECONDS and self.results:
            with _undisturbed():
                self.saver.save(_key(self.obligations), self._data(), quiet=True, partial=True)
            self.saved = time.monotonic()

    # -- the end --------------------------------------------------------------------------------------------

    def _finish(self) -> int:
        code = self._code()
        data = self._data()
        self.saver.report(data)
        counts = data["result"]
        words = [f"{counts[word]} {word}" for word in ("proved", "refuted", "unknown")]
        unexpected = counts["unexpected"]
        total = f"{', '.join(words)}; {unexpected or 'none'} unexpected; {data['seconds']:.1f} s"
        left = len(self.obligations) - len(self.results)
        self.printer(total + (f"; interrupted, {left} not decided" if self.interrupted else ""))
        path = self.saver.save(_key(self.obligations), data, partial=left > 0)
        if path is not None:
            self._save_reproducers(path.parent)
        return code

    def _save_reproducers(self, folder: Path) -> None:
        """A script beside the results for each refutation by executions of a sum."""
        from fpsmt.files.reproduce import script_of
        from fpsmt.files.results import Record

        for result in self.results:
            if result.verdict != "refuted":
                continue
            record = Record(result.obligation.name, result.record, {})
            claim = record.claim()
            text = script_of(claim, [schedule for _, schedule in record.schedules(claim)])
            if text is not None:
                name = "".join(c if c.isalnum() else "-" for c in result.obligation.spec.id)
                program = folder / f"{name}-{claim.hash[:8]}.py"
                self.saver.save_script(program, text, f"the refutation of {result.obligation.name}")

    def _code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        if any(_is_internal(r) for r in self.results):
            return INTERNAL
        unexpected = [r for r in self.results if not r.as_expected]
        if not unexpected:
            return PROVED
        return REFUTED if any(r.verdict != "unknown" for r in unexpected) else UNKNOWN

    def _data(self) -> dict[str, Any]:
        unexpected = [r for r in self.results if not r.as_expected]
        left = len(self.obligations) - len(self.results)
        data: dict[str, Any] = {
            "command": "prove",
            "claim": {
                "text": f"{len(self.obligations)} obligations have the verdicts that their specs expect",
                "hash": _key(self.obligations),
            },
        }
        if any(r.verdict != "unknown" for r in unexpected):
            data["verdict"] = "refuted"
        elif unexpected or left:
            data["verdict"] = "unknown"
            reasons = [f"{len(unexpected)} are unknown"] if unexpected else []
            data["reason"] = " and ".join([*reasons, *([f"{left} were not decided"] if left else [])])
        else:
            data["verdict"] = "proved"
        data["seconds"] = round(time.monotonic() - self.start, 4)
        data["evidence"] = None
        data["result"] = {
            **{word: sum(r.verdict == word for r in self.results) for word in ("proved", "refuted", "unknown")},
            "unexpected": len(unexpected),
            "not_decided": left,
            "interrupted": self.interrupted,
            "obligations": [_stored(r) for r in self.results],
        }
        return data


def _is_internal(result: Result) -> bool:
    return result.how == "internal error" or str(result.record.get("reason", "")).startswith("InternalError")


def _stored(result: Result) -> dict[str, Any]:
    return {
        "spec": result.obligation.spec.id,
        "case": result.obligation.case.name,
        "verdict": result.verdict,
        "expected": result.obligation.case.expected,
        "how": result.how,
        "seconds": round(result.seconds, 4),
        "record": result.record,
    }


def _line(result: Result) -> str:
    """verdict, spec, case, how, seconds; then what is unexpected, and why it is unknown."""
    line = f"{result.verdict:<8} {result.obligation.name}  {result.how}  {result.seconds:.2f} s"
    if not result.as_expected:
        line += f"  UNEXPECTED: its spec expects {result.obligation.case.expected}"
    if result.verdict == "unknown":
        reason = str(result.record.get("reason") or "no reason given").strip().splitlines()[-1].strip()
        step = str(result.record.get("next_step") or "")
        line += f"\n         {reason}" + (f"; {step}" if step else "")
    return line
