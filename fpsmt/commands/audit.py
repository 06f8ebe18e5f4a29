"""``fpsmt audit``: how far a routine or a float program is from a real function."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
    INTERRUPTED,
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
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.engines.audit import Audit
    from fpsmt.engines.audit_subjects import Subject
    from fpsmt.engines.audit_tally import Seen, Tally
    from fpsmt.floats import Float
    from fpsmt.functions import Function
    from fpsmt.kernel import Verdict

SAVE_SECONDS = 10.0  #: between states saved of an exhaustive audit


def audit_command(
    routine: Annotated[
        str | None, typer.Argument(metavar="[MODULE:CALLABLE]", help="E.g. numpy:tanh, mymodule:gelu.")
    ] = None,
    program: Annotated[
        str | None, typer.Option(metavar="P", help="A program, by its name or its text, instead of a routine.")
    ] = None,
    against: Annotated[str | None, typer.Option(metavar="FUNCTION", help="The real function.")] = None,
    format: Annotated[str, typer.Option("--format", metavar="F", help="Of inputs and results.")] = "float32",
    domain: Annotated[str | None, typer.Option(metavar="LO:HI", help="Only inputs from LO to HI.")] = None,
    ulps: Annotated[str | None, typer.Option(metavar="K", help="Asks whether all results are within K ulps.")] = None,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Tries every input, also of 32 bits.")] = False,
    sample: Annotated[int, typer.Option(metavar="N", help="How many inputs, where not all are tried.")] = 1 << 20,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the sample.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Goes on from a saved state.")] = False,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="A picture (svg, png): needs matplotlib.")] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 86400.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """The largest error of a routine or a float program in ulps, and where its range or its order is wrong.

    Formats of at most 16 bits are tried whole, longer ones with --exhaustive; else a sample is, and the result says so.
    Exit code with --ulps K: 0 when every input was tried (or the contract is proved) and meets it, 1 with an input that
    does not, 3 when only a sample was tried.

    Examples:

      fpsmt audit numpy:tanh --against tanh --format float16

      fpsmt audit --program 'tanh_rational | fma always' --format float32 --domain 8:9 --exhaustive
    """
    check_limits(timeout, jobs)
    if sample < 1:
        raise UsageError(f"--sample {sample}: write a positive number")
    run = _Run(*_asked(routine, program, against, format), Saver.of("audit", json_to, out, no_save))
    run.limits(domain, ulps)
    return run.go(exhaustive, sample, seed, timeout, resume, plot)


def _asked(routine: str | None, program: str | None, against: str | None, format: str) -> tuple[Subject, Function]:
    import fpsmt.rational  # noqa: F401  (functions rational(…) by name)
    from fpsmt.engines.audit_subjects import _usual, load, of_program
    from fpsmt.functions import function_named
    from fpsmt.terms.programs import LIBRARY, read_program

    if (routine is None) == (program is None):
        raise UsageError("audit needs a routine, MODULE:CALLABLE, or --program P (and not both)")
    name = against
    if program is not None and against is None:
        word = program.partition("|")[0].strip()
        name = LIBRARY[word].function if word in LIBRARY else ""
    if not name:
        raise UsageError("say with --against FUNCTION what the results are compared with, e.g. --against tanh")
    function = function_named(name)
    if program is not None:
        return of_program(read_program(program), function, _usual(format)), function
    assert routine is not None
    return load(routine, format), function


@dataclass
class _Run:
    """The state of the command."""

    subject: Subject
    function: Function
    saver: Saver
    low: Float | None = None
    high: Float | None = None
    ulps: Any = None
    start: float = field(default_factory=time.monotonic)
    saved: float = 0.0
    state: Any = None

    def limits(self, domain: str | None, ulps: str | None) -> None:
        from fractions import Fraction

        from fpsmt.claims.functions import read_value
        from fpsmt.floats import read_number

        if domain is not None:
            ends = domain.split(":")
            if len(ends) != 2:
                raise UsageError(f"--domain {domain}: write LO:HI, two values of the format")
            self.low, self.high = (read_value(self.subject.context.format, end) for end in ends)
        if ulps is not None:
            number = read_number(ulps)
            if not isinstance(number, Fraction) or number < 0:
                raise UsageError(f"--ulps {ulps}: write a number, at least 0")
            self.ulps = number

    @property
    def text(self) -> str:
        where = f" from {self.low} to {self.high}" if self.low is not None else ""
        return f"the largest error of {self.subject.name} against {self.function} in {self.subject.context}{where}"

    @property
    def key(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def go(
        self, exhaustive: bool, sample: int, seed: int, timeout: float, resume: bool, plot: str | None
    ) -> int:  # fmt: skip
        from fpsmt.display.errors import save_plot
        from fpsmt.display.progress import Progress
        from fpsmt.engines.audit import audit

        before = self._saved_state() if resume else None
        self.saved = time.monotonic()
        try:
            with time_limit(timeout), Progress(f"audit of {self.subject.name}") as progress:

                def heard(line: str, tally: Tally) -> None:
                    progress.update(line)
                    if exhaustive and time.monotonic() - self.saved > SAVE_SECONDS:
                        self.state, self.saved = tally.to_json(), time.monotonic()
                        self._save_state()

                found = audit(
                    self.subject, self.function, self.low, self.high, exhaustive, sample, seed, before, heard
                )  # fmt: skip
                progress.update("deciding")
                verdict = self._verdict(found, timeout)
        except TimeLimit:
            self._save_state()
            self.saver.printer("audit unknown", f"reason: the time limit of {timeout:g} s was passed")
            return UNKNOWN
        except KeyboardInterrupt:
            self._save_state()
            if self.state is not None:
                say("--resume goes on from the saved state")
            return INTERRUPTED
        data = self._data(found, verdict)
        self.saver.report(data)
        self.saver.printer(*_lines(found, verdict))
        self.saver.save(self.key, data)
        if plot is not None:
            save_plot(Path(plot), self.text, found.context.format, found.tally.binades)
        if verdict is not None and verdict.name != "unknown":
            return EXIT_OF[verdict.name]
        met = self.ulps is None or found.error.high <= self.ulps  # the enclosure may hold both sides of K
        return PROVED if found.exhaustive and met else UNKNOWN

    # -- states -------------------------------------------------------------------------------------------

    def _save_state(self) -> None:
        if self.state is not None:
            data = {
                "command": "audit",
                "claim": {"text": self.text, "hash": self.key},
                "verdict": "unknown",
                "reason": "not finished: --resume goes on",
                "result": {"state": self.state},
            }
            self.saver.save(self.key, data, quiet=True, partial=True)

    def _saved_state(self) -> Tally | None:
        from fpsmt.engines.audit_tally import Tally
        from fpsmt.kernel import read_result

        whole = self.saver.path(self.key)
        path = None if whole is None else whole.with_suffix(".partial.json")
        if path is None or not path.exists():
            say("no saved state: starting from the beginning")
            return None
        tally = Tally.from_json(read_result(path).get("result", {}).get("state"))
        say(f"going on after {tally.inputs:,} inputs")
        return tally

    # -- the contract that was asked for ------------------------------------------------------------------

    def _verdict(self, found: Audit, timeout: float) -> Verdict | None:
        """Proved or refuted by the kernel; None where nothing was asked for, or where results were only observed."""
        if self.ulps is None:
            return None
        from fpsmt import kernel
        from fpsmt.claims.contracts import AllowedOutput, MeetsContract
        from fpsmt.engines import Options, decide
        from fpsmt.engines.audit_tally import code_of
        from fpsmt.functions import Implementation, WithinUlps

        asked, ctx = WithinUlps(self.ulps), found.context
        pairs = [seen.first for seen in (found.tally.nan, found.tally.infinite)]
        suspects = [
            (code_of(ctx.format, float.fromhex(pair[0])), code_of(ctx.format, float.fromhex(pair[1])))
            for pair in pairs
            if pair is not None
        ]
        if found.at is not None and found.result is not None and found.error.low > self.ulps:
            suspects.append((found.at, found.result))
        for x, y in suspects:
            verdict = kernel.apply("one output", AllowedOutput(Implementation(found.function, asked), ctx, x, y))
            if verdict.name == "refuted":
                return verdict
        implementation = self._implementation(found)
        if implementation is None:
            return None
        claim = MeetsContract(implementation, ctx, asked, ctx.format, self.low, self.high)
        verdict = decide(claim, Options(timeout=timeout))
        return None if verdict.name == "unknown" and found.exhaustive and found.error.high <= self.ulps else verdict

    def _implementation(self, found: Audit) -> Any:
        """The program; or the results of a routine at every input of a small format, as a table."""
        if self.subject.implementation is not None:
            return self.subject.implementation
        fmt = found.context.format
        if fmt.bits > 16:
            return None
        from fpsmt.floats.vector import encode
        from fpsmt.functions import Implementation, Table
        from fpsmt.terms.programs import every_input

        outputs = encode(fmt, self.subject.call(every_input(fmt)))
        return Implementation(found.function, Table(fmt, fmt, tuple(outputs.tolist())))

    def _data(self, found: Audit, verdict: Verdict | None) -> dict[str, Any]:
        from fpsmt.kernel import verdict_to_json

        data: dict[str, Any] = {"command": "audit"}
        if verdict is not None:
            data |= verdict_to_json(verdict)
        else:
            data |= {"claim": {"text": self.text, "hash": self.key}, "verdict": "unknown", "evidence": None}
            data["reason"] = _reason(found, self.ulps)
        data["seconds"] = round(time.monotonic() - self.start, 4)
        data["result"] = _result(found)
        return data


def _reason(found: Audit, ulps: Any) -> str:
    tried = f"all {found.tally.inputs:,} inputs" if found.exhaustive else f"a sample of {found.tally.inputs:,} inputs"
    asked = "no contract was asked for (--ulps K)" if ulps is None else "results of a routine are observed, not proved"
    return f"{tried} tried; {asked}"


def _value(x: Float | None) -> Any:
    return None if x is None else {"value": x.hex, "decimal": x.decimal, "bits": x.bits}


def _result(found: Audit) -> dict[str, Any]:
    from fpsmt.engines.audit_errors import above, below

    tally, moved = found.tally, found.moved
    ends = None if found.range is None else [end.hex for end in found.range]
    return {
        "max_ulps": above(found.error.high).hex(),
        "max_ulps_low": below(found.error.low).hex(),
        "at": _value(found.at),
        "result": _value(found.result),
        "inputs": tally.inputs,
        "exhaustive": found.exhaustive,
        "range": {"rounded": ends, "above": tally.over.to_json(), "below": tally.under.to_json()},
        "non_monotone": tally.falls.to_json(),
        "nan": tally.nan.to_json(),
        "infinite": tally.infinite.to_json(),
        "position": None
        if moved is None
        else {
            "count": moved.count, "how": moved.how, "at": _value(moved.x), "result": _value(moved.elsewhere),
            "other": _value(moved.alone),
        },
        "contract": None if found.contract is None else _implementation_of(found).to_json(),
        "implementation": None if found.contract is None else _implementation_of(found).text,
        "binades": {str(k): [v.hex() for v in row] for k, row in sorted(tally.binades.items())},
    }  # fmt: skip


def _implementation_of(found: Audit) -> Any:
    from fpsmt.functions import Implementation

    assert found.contract is not None
    return Implementation(found.function, found.contract, found.moved is None)


def _lines(found: Audit, verdict: Verdict | None) -> list[str]:
    from fpsmt.display.errors import error_lines
    from fpsmt.engines.audit_errors import above

    tally, fmt = found.tally, found.context.format
    worst = above(found.error.high)
    how = "exhaustive" if found.exhaustive else "sampled"
    wrong = tally.over.count + tally.under.count
    first = f"audit max_ulps {worst:.6g} {how} inputs {tally.inputs} out-of-range {wrong} falls {tally.falls.count}"
    lines = [first, f"subject      {found.subject} against {found.function} in {found.context}"]
    if found.at is not None and found.result is not None:
        low = float(found.error.low)
        shown = f"{worst:.6g}" if worst - low < 1e-4 * max(1.0, worst) else f"between {low:.6g} and {worst:.6g}"
        lines += [f"largest      {shown} ulps at {_shown(found.at)}", f"             result {_shown(found.result)}"]
    lines += _seen("above range", tally.over, fmt) + _seen("below range", tally.under, fmt)
    falls = "no direction to check" if not found.function.directions else "none"
    lines += _seen("falls", tally.falls, fmt, " floats") or [f"falls        {falls}"]
    lines += _seen("NaN", tally.nan, fmt) + _seen("infinite", tally.infinite, fmt)
    if found.moved is not None:
        m = found.moved
        lines.append(
            f"position     {m.count} results differ {m.how}: at {m.x} it is {m.alone.hex}, else {m.elsewhere.hex}"
        )
    label = "measured" if found.exhaustive else "sampled"
    known = "none: a NaN or an infinity is wrong" if found.contract is None else _implementation_of(found).text
    lines.append(f"contract     {known} ({label})")
    if verdict is not None:
        lines += [f"{verdict.name:<12} {verdict.claim.text}", *(f"  {x}" for x in _why(verdict))]
    return [*lines, *error_lines(fmt, tally.binades)]


def _why(verdict: Verdict) -> list[str]:
    return str(verdict).split("\n")[1:]


def _shown(x: Float) -> str:
    return f"{x.decimal} = {x.hex} = {x.bits}"


def _seen(name: str, seen: Seen, fmt: Any, unit: str = "") -> list[str]:
    if not seen.count or seen.first is None or seen.last is None or seen.worst is None:
        return []
    from fpsmt.engines.audit_tally import code_of

    first, last = (code_of(fmt, float.fromhex(pair[0])).decimal for pair in (seen.first, seen.last))
    x, y = (code_of(fmt, float.fromhex(v)).decimal for v in seen.worst)
    size = f" by {seen.size:g}{unit}" if unit else ""
    return [f"{name:<12} {seen.count} inputs, from {first} to {last}; worst {y} at {x}{size}"]
