"""``fpsmt conditions``: which activations satisfy the conditions for universality, and up to how many ulps of error."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
    INTERRUPTED,
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
    short_hash,
    time_limit,
)
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.conditions import Windows
    from fpsmt.floats import Context
    from fpsmt.functions import Function
    from fpsmt.kernel import Verdict

TEN = "sigmoid,tanh,relu,elu,selu,gelu,swish,mish,sin,identity"
ACTIVATIONS = f"{TEN},cos,sqrt1p_square,cosh,gaussian"
MOST_ULPS = 10  #: of the table
MARKS = {"proved": "+", "refuted": "-", "unknown": "?"}
FORMATS = "float8_e4m3,float8_e5m2,float16,bfloat16,float32,float64"
WORDS = ("proved", "refuted", "unknown")


def conditions_command(
    activation: Annotated[
        str | None, typer.Option(metavar="A,…", help="Functions, or all; else the usual ones.")
    ] = None,
    format: Annotated[str, typer.Option("--format", metavar="F,…", help="Formats.")] = FORMATS,
    ulps: Annotated[
        str | None, typer.Option(metavar="K,…", help="Only for these errors; else the largest K is looked for.")
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="A verdict for each K from 0 to 10, and the largest K; ten activations.")
    ] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Condition 1 of arXiv 2506.16065 instead, for correct rounding.")
    ] = False,
    zero: Annotated[str | None, typer.Option(metavar="Z", help="C0: the largest |I(c0)|.")] = None,
    one: Annotated[str | None, typer.Option(metavar="LO..HI", help="C1: the window for |I(c1)|.")] = None,
    point: Annotated[str | None, typer.Option(metavar="LO..HI", help="C2: the window for a separation point.")] = None,
    value: Annotated[str | None, typer.Option(metavar="LO..HI", help="C2: the window for the values there.")] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Which activations have what four layers need to represent every function, in which formats.

    A small value (C0), one near 1 (C1) and a separation point (C2), correctly rounded or for every implementation
    within K ulps.  Without --ulps: the largest K for which that holds; with --table also each K from 0 to 10.

    Examples:

      fpsmt conditions --activation sigmoid,gelu --format bfloat16

      fpsmt conditions --activation cosh --format float32 --ulps 0
    """
    check_limits(timeout, jobs)
    if interval and (table or any(x is not None for x in (ulps, zero, one, point, value))):
        raise UsageError("--interval has no other parameters: leave out --table, --ulps and the windows")
    if table and ulps is not None:
        raise UsageError("--table has a column for each K from 0 to 10: leave out --ulps")
    saver = Saver.of("conditions", json_to, out, no_save)
    windows = _Given(zero, one, point, value)
    errors = None if ulps is None else [_ulps(word) for word in ulps.split(",")]
    names = activation or (TEN if table else ACTIVATIONS)
    run = _Run(saver, _pairs(names, format, windows), errors, interval, table)
    return run.go(timeout)


@dataclass(frozen=True)
class _Given:
    """The windows that were given; the others have their defaults."""

    zero: str | None
    one: str | None
    point: str | None
    value: str | None

    def of(self, ctx: Context) -> Windows:
        from fpsmt.claims.conditions import Windows, default_windows

        pairs = {name: getattr(self, name) for name in ("one", "point", "value")}
        given = {name: _pair(f"--{name}", text) for name, text in pairs.items() if text is not None}
        if len(given) == 3 and self.zero is not None:
            return Windows(_number("--zero", self.zero), **given)
        base = default_windows(ctx.format)
        zero = base.zero if self.zero is None else _number("--zero", self.zero)
        return Windows(zero, **{name: given.get(name, getattr(base, name)) for name in pairs})


def _number(option: str, text: str) -> Fraction:
    from fpsmt.floats import read_number

    found = read_number(text)
    if not isinstance(found, Fraction):
        raise UsageError(f"{option} {text}: write a finite number")
    return found


def _pair(option: str, text: str) -> tuple[Fraction, Fraction]:
    low, dots, high = text.partition("..")
    if not dots:
        raise UsageError(f"{option} {text}: write LO..HI")
    return _number(option, low), _number(option, high)


def _ulps(word: str) -> int:
    if not word.strip().isdigit():
        raise UsageError(f"--ulps {word}: write whole numbers, such as 0,1,10")
    return int(word)


Asked = tuple["Function", "Context", "Windows | None"]


def _pairs(activation: str, format: str, windows: _Given) -> list[Asked]:
    import fpsmt.rational  # noqa: F401  (functions rational(…) by name)
    from fpsmt.floats import context
    from fpsmt.functions import FUNCTIONS, function_named

    names = list(FUNCTIONS) if activation.strip() == "all" else _words(activation)
    formats = _words(format)
    if not names or not formats:
        raise UsageError("name at least one activation and one format")
    functions = [function_named(name) for name in names]
    contexts = [context(name) for name in formats]
    return [(function, ctx, windows.of(ctx)) for ctx in contexts for function in functions]


def _words(text: str) -> list[str]:
    """What commas separate, but for those in parentheses: ieee(4,3) is one word."""
    return [word.strip() for word in re.split(r",(?![^()]*\))", text) if word.strip()]


@dataclass
class _Run:
    saver: Saver
    asked: list[Asked]
    errors: list[int] | None
    interval: bool
    table: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[tuple[str, str, Verdict]] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)

    def go(self, timeout: float) -> int:
        from fpsmt.display.progress import Progress

        late = interrupted = False
        with Progress("conditions") as progress:
            self.progress = progress
            try:
                with time_limit(timeout):
                    for function, ctx, windows in self.asked:
                        self._report(f"{function.name} in {ctx}")
                        self.rows.append(self._row(function, ctx, windows, timeout))
            except TimeLimit:
                late = True
            except KeyboardInterrupt:
                interrupted = True
        data = self._data(late or interrupted)
        self.saver.report(data)
        printer = self.saver.printer
        counts = self.counts
        printer(f"conditions {len(self.rows)} " + " ".join(f"{word} {counts[word]}" for word in WORDS))
        printer(*self._table())
        left = len(self.asked) - len(self.rows)
        if left:
            say(f"{'interrupted' if interrupted else f'the time limit of {timeout:g} s was passed'}: {left} left")
        self.saver.save(data["claim"]["hash"], data, partial=bool(left))
        if interrupted:
            return INTERRUPTED
        return UNKNOWN if late else EXIT_OF[data["verdict"]]

    def _report(self, line: str) -> None:
        self.progress.update(f"{len(self.rows)} of {len(self.asked)} done, {line}")

    # -- one row --------------------------------------------------------------------------------------------

    def _row(self, function: Function, ctx: Context, windows: Windows | None, timeout: float) -> dict[str, Any]:
        from fpsmt.claims.interval_condition import IntervalCondition
        from fpsmt.engines import Options, decide
        from fpsmt.engines.conditions import break_even, condition_at
        from fpsmt.functions import Implementation

        options = Options(timeout=timeout, progress=self._report if self.errors is None else None)
        row: dict[str, Any] = {"activation": function.name, "format": str(ctx)}
        if self.interval:
            verdict = decide(IntervalCondition(Implementation(function), ctx), options)
            self.verdicts.append((function.name, str(ctx), verdict))
            return row | {"verdict": verdict.name, "reason": _why(verdict)}
        assert windows is not None
        if self.errors is not None:
            verdicts = [decide(condition_at(function, ctx, windows, k), options) for k in self.errors]
            words = {str(k): verdict.name for k, verdict in zip(self.errors, verdicts)}
            self.verdicts += [(function.name, f"{ctx} {k} ulps", v) for k, v in zip(self.errors, verdicts)]
            names = set(words.values())
            word = "refuted" if "refuted" in names else "unknown" if "unknown" in names else "proved"
            reason = next((_why(v) for v in verdicts if v.name != "proved"), "")
            return row | {"verdict": word, "ulps": words, "reason": reason}
        found: dict[int, Verdict] = {}
        if self.table:
            found = {k: decide(condition_at(function, ctx, windows, k), options) for k in range(MOST_ULPS + 1)}
            self.verdicts += [(function.name, f"{ctx} {k} ulps", verdict) for k, verdict in found.items()]
            row["ulps"] = {str(k): verdict.name for k, verdict in found.items()}
        edge = break_even(function, ctx, windows, options, dict(found))
        if edge.below is not None and edge.ulps not in found:
            self.verdicts.append((function.name, f"{ctx} {edge.ulps} ulps", edge.below))
        above = 0 if edge.ulps is None else edge.ulps + 1
        if edge.above is not None and above not in found:
            self.verdicts.append((function.name, f"{ctx} {above} ulps", edge.above))
        exact = edge.above is not None and edge.above.name == "refuted"
        word = "proved" if edge.ulps is not None else "refuted" if exact else "unknown"
        reason = "more ulps are not asked" if edge.above is None else _why(edge.above)
        return row | {"verdict": word, "largest": edge.ulps, "exact": exact, "reason": reason}

    # -- all of them ----------------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        return {word: sum(row["verdict"] == word for row in self.rows) for word in WORDS}

    def _table(self) -> list[str]:
        from fpsmt.display.tables import cut, text_table

        if self.interval:
            head, cells = ["verdict"], lambda row: [row["verdict"]]
        elif self.errors is not None:
            head, cells = [f"K={k}" for k in self.errors], lambda row: list(row["ulps"].values())
        elif self.table:
            head = [*map(str, range(MOST_ULPS + 1)), "largest K"]
            cells = lambda row: [*(MARKS[word] for word in row["ulps"].values()), _largest(row)]  # noqa: E731
        else:
            head, cells = ["largest K"], lambda row: [_largest(row)]
        rows = [[row["format"], row["activation"], *cells(row), cut(row["reason"], 72)] for row in self.rows]
        return text_table(["format", "activation", *head, "because" if self.errors or self.interval else "then"], rows)

    def _data(self, stopped: bool) -> dict[str, Any]:
        from fpsmt.kernel import verdict_to_json

        obligations = []
        for name, case, verdict in self.verdicts:
            record = verdict_to_json(verdict)
            obligations.append({"spec": name, "case": case, "verdict": record["verdict"], "expected": record["verdict"],
                                "how": record["how"], "seconds": record["seconds"], "record": record})  # fmt: skip
        counts = self.counts
        verdict_word = "unknown" if counts["unknown"] or stopped else "refuted" if counts["refuted"] else "proved"
        text = f"conditions for universality: {len(self.asked)} activations and formats"
        key = "\n".join(f"{f.name} {c} {w.to_json() if w else ''}" for f, c, w in self.asked)
        asked = "table" if self.table else f"{self.errors} {self.interval}"
        data: dict[str, Any] = {
            "command": "conditions",
            "claim": {"text": text, "hash": short_hash(f"{key} {asked}") * 8},
            "verdict": verdict_word,
        }
        if verdict_word == "unknown":
            data["reason"] = "it was stopped" if stopped else f"{counts['unknown']} are not decided"
        data["seconds"] = round(time.monotonic() - self.start, 4)
        data["evidence"] = None
        data["result"] = {**counts, "not_decided": len(self.asked) - len(self.rows), "rows": self.rows}
        if obligations:
            data["result"]["obligations"] = obligations
        return data


def _largest(row: dict[str, Any]) -> str:
    if row["largest"] is None:
        return "none"
    return f"{row['largest']}" if row["exact"] else f"at least {row['largest']}"


def _why(verdict: Verdict) -> str:
    """Which part fails, and by what rule."""
    from fpsmt.kernel import Refuted, Unknown

    if isinstance(verdict, Refuted):
        part = verdict.counterexample.get("part")
        how = {"replay": "an implementation without separation point"}.get(verdict.how, verdict.how)
        return f"{part}: {how}" if part else how
    return verdict.reason if isinstance(verdict, Unknown) else ""
