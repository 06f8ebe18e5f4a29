"""``fpsmt approximate``: a rational, or a composition of rationals, with a certified error."""

from __future__ import annotations

import math
import sys
import time
from fractions import Fraction
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
    short_hash,
    time_limit,
)
from fpsmt.commands.options import read_context
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.engines import Options
    from fpsmt.engines.rational_formats import Held
    from fpsmt.engines.smallest import Candidate, Question
    from fpsmt.floats import Context
    from fpsmt.rational import Interval

METHODS = ("minimax", "network", "aaa")
SMALLEST = ("parameters", "degree")
SHARES = (Fraction(1), Fraction(1, 2), Fraction(1, 8))  #: of an error, for the rational before it is rounded


def approximate_command(
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="E.g. tanh, gelu, abs, 'root(3)'.")],
    interval: Annotated[str, typer.Option("--interval", metavar="LO,HI", help="Where, ends included.")],
    error: Annotated[str | None, typer.Option("--error", metavar="E", help="Largest error allowed.")] = None,
    type: Annotated[str | None, typer.Option("--type", metavar="M,N", help="Degrees above and below.")] = None,
    relative: Annotated[bool, typer.Option("--relative", help="The error is relative to the function.")] = False,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="minimax: best of a type; network: a composition; aaa.")
    ] = "minimax",
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="F", help="A program of the rational in this format holds the error, too."),
    ] = None,
    smallest: Annotated[
        str | None,
        typer.Option("--smallest", metavar="SIZE", help="With --error: every method; least parameters, or degree."),
    ] = None,
    gap: Annotated[
        str, typer.Option("--gap", metavar="G", help="How near the two bounds of the error are.")
    ] = "1/1000",
    law: Annotated[bool, typer.Option("--law", help="Sizes of networks for errors of 1e-2 … 1e-300.")] = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="The error curve and its band, or the law: .svg, .png.")
    ] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 120.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """A rational approximation, with proof: its error lies between two bounds over all real numbers of the interval.

    minimax also proves how far any other rational of the type must be.  --smallest tries best rationals, polynomials,
    aaa and networks, and takes the smallest that reaches the error.  Exit code 3 when the error asked for is not
    reached, or when nothing is proved in time.
    """
    check_limits(timeout, jobs)
    saver = Saver.of("approximate", json_to, out, no_save)
    if law:
        from fpsmt.commands.size_law import size_law

        if error is not None or type is not None or relative or smallest is not None:
            raise UsageError("--law has errors of its own: leave --error, --type, --relative and --smallest out")
        return size_law(function, max(map(abs, _interval(interval))), timeout, plot, saver)
    return _Run(function, interval, error, type, relative, method, smallest, format, gap, saver, timeout, plot).run()


class _Run:
    def __init__(
        self,
        function: str,
        interval: str,
        error: str | None,
        type: str | None,
        relative: bool,
        method: str,
        smallest: str | None,
        format: str | None,
        gap: str,
        saver: Saver,
        timeout: float,
        plot: str | None = None,
    ) -> None:
        from fpsmt.rational import named

        self.target, self.name = named(function), function
        self.interval = _interval(interval)
        if (error is None) == (type is None):
            raise UsageError("give either --error E or --type M,N")
        if method not in METHODS:
            raise UsageError(f"--method {method!r}: write one of {', '.join(METHODS)}")
        if method == "network" and (error is None or relative):
            raise UsageError("--method network needs --error E, an absolute error")
        if smallest is not None and (smallest not in SMALLEST or error is None or method != "minimax"):
            raise UsageError("--smallest parameters, or --smallest degree, needs --error E, and tries every method")
        if format is not None and (method == "network" or relative or smallest is not None):
            raise UsageError("--format F is for the rationals of minimax and aaa, and absolute errors")
        self.context = None if format is None else read_context("--format", format)
        self.error = None if error is None else _positive("--error", error)
        self.type = None if type is None else _type(type)
        self.gap = _positive("--gap", gap)
        self.relative, self.method, self.saver, self.timeout, self.plot = relative, method, saver, timeout, plot
        self.smallest, self.others = smallest, dict[str, Any]()
        self.held: Held | None = None
        self.start = time.monotonic()

    def run(self) -> int:
        from fpsmt.display.progress import Progress
        from fpsmt.engines import Options

        try:
            with time_limit(self.timeout), Progress(f"approximating {self.name}") as progress:
                options = Options(timeout=self.timeout, progress=progress.update)
                if self.smallest is not None:
                    return self._smallest(options)
                if self.context is not None:
                    return self._in_format(self.context, options)
                return self._report(self._of_a_type(options) if self.type is not None else self._one(options))
        except TimeLimit:
            return self._unknown(f"the time limit of {self.timeout:g} s was passed", "raise --timeout")
        except Unsupported as reason:
            return self._unknown(str(reason), "change the interval, the type or the method")

    def _of_a_type(self, options: Options) -> Candidate:
        from fpsmt.engines.approximation import certified_minimax, certified_sup_norm
        from fpsmt.engines.smallest import Candidate
        from fpsmt.rational import Problem, rational
        from fpsmt.rational.aaa import aaa

        assert self.type is not None
        options.report(f"{self.name}: type {self.type[0]},{self.type[1]}")
        if self.method == "minimax":
            best = certified_minimax(self.target, self.interval, self.type, self.relative, self.gap, options)
            return Candidate(best.bounds, best.upper, best)
        found = rational(aaa(self.target, self.interval, max(self.type)))
        problem = Problem(self.target, found, (self.interval,), self.relative)
        return Candidate(*certified_sup_norm(problem, self.gap, options))

    def _question(self, share: Fraction = Fraction(1)) -> Question:
        from fpsmt.engines.smallest import Question

        assert self.error is not None
        return Question(self.target, self.interval, self.error * share, self.relative, self.gap)

    def _one(self, options: Options, share: Fraction = Fraction(1)) -> Candidate:
        """The error, or a share of it, is asked for, of one method."""
        from fpsmt.engines.smallest import by_aaa, by_minimax, by_network

        methods = {"minimax": by_minimax, "aaa": by_aaa, "network": by_network}
        return methods[self.method](self._question(share), options)

    def _in_format(self, ctx: Context, options: Options) -> int:
        """With --error: rationals of smaller and smaller errors, until a program of one holds it."""
        from fpsmt.engines.rational_formats import in_format

        if self.type is not None:
            found = self._of_a_type(options)
            self.held = in_format(found.rational, self.name, ctx, self.interval, None, options)
            return self._report(found)
        reason = ""
        for share in SHARES:
            found = self._one(options, share)
            try:
                self.held = in_format(found.rational, self.name, ctx, self.interval, self.error, options)
            except Unsupported as why:
                reason = str(why)
                continue
            return self._report(found)
        raise Unsupported(reason)

    def _smallest(self, options: Options) -> int:
        """The error is asked for, of every method."""
        from fpsmt.engines.smallest import SIZES, Candidate, candidates

        found: dict[str, Candidate] = {}
        for name, candidate in candidates(self._question(), options):
            if isinstance(candidate, Candidate):
                found[name] = candidate
                sizes = {"parameters": candidate.parameters, "degree": str(candidate.degree)}
                self.others[name] = {**sizes, "error_high": _up(candidate.bounds.high).hex()}
            else:
                self.others[name] = {"reason": candidate}
        if not found:
            raise Unsupported("; ".join(f"{name}: {other['reason']}" for name, other in self.others.items()))
        assert self.smallest is not None
        return self._report(min(found.values(), key=SIZES[self.smallest]))

    # -- output -----------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        asked = [self.name, self.interval, self.error, self.type, self.relative, self.method, self.gap]
        asked += [self.smallest, None if self.context is None else str(self.context)]
        return short_hash(str(asked))

    def _report(self, found: Candidate) -> int:
        from fpsmt.kernel import verdict_to_json

        bounds, best, formula = found.bounds, found.best, found.formula
        result: dict[str, Any] = {
            "error_low": _down(bounds.low).hex(),
            "error_high": _up(bounds.high).hex(),
            "exact_low": str(bounds.low),
            "exact_high": str(bounds.high),
            "at": str(bounds.at),
            "relative": self.relative,
            "rational": None if best is None else best.rational.to_json(),
            "network": None if best is not None else formula.to_json(),
            "parameters": formula.parameters,
        }
        if best is not None:
            result["type"] = list(best.rational.type)
            result["best"] = verdict_to_json(best.lower)
        if found.fewer is not None:
            result["fewer"] = verdict_to_json(found.fewer)
        if self.others:
            result["alternatives"] = self.others
        if self.held is not None:
            result["program"] = verdict_to_json(self.held.proof)
        data = {"command": "approximate", **verdict_to_json(found.proof), "result": result}
        data["seconds"] = round(time.monotonic() - self.start, 4)
        self.saver.report(data)
        self.saver.printer(*self._lines(found))
        self.saver.save(self.key, data)
        if self.plot is not None:
            from fpsmt.commands.error_curve import draw_error

            draw_error(self.name, bounds, Path(self.plot))
        return PROVED

    def _lines(self, found: Candidate) -> list[str]:
        from fpsmt.claims import BestError

        bounds, best, formula, proof = found.bounds, found.best, found.formula, found.proof
        shape = f"type {best.rational.type[0]},{best.rational.type[1]}" if best is not None else (
            f"parameters {formula.parameters} steps {len(formula.steps)} depth {formula.depth}"
        )  # fmt: skip
        lines = [
            f"approximate error {_text(bounds.low)} {_text(bounds.high)} {shape}",
            f"proved: {proof.claim.text}",
            f"  by {proof.how}" + (f" on {bounds.leaves} intervals" if bounds.trees else "")
            + f"; {'largest near' if bounds.trees else 'the lower bound is at'} x = {_float(bounds.at):.6g}",
        ]
        if best is not None:
            assert isinstance(best.lower.claim, BestError)
            if found.fewer is not None:
                assert isinstance(found.fewer.claim, BestError)
                lines.append(f"proved: no rational of degree {max(found.fewer.claim.type)} reaches the error asked for")
            lines.append(f"proved: no rational of this type has an error below {_text(best.lower.claim.bound)}")
            for name, numbers in (("numerator", best.rational.numerator), ("denominator", best.rational.denominator)):
                lines += [f"{name}, low to high"] + [f"  {_number(c)}" for c in numbers]
            lines.append("the coefficients are exact in the result; above they are rounded")
        return lines[:1] + self._table() + self._program() + lines[1:]

    def _program(self) -> list[str]:
        """What holds in the format."""
        if self.held is None:
            return []
        held, claim = self.held, self.held.claim
        return [
            f"proved in {claim.context}: {held.schedule}, fma {held.fma}, is within {_text(held.error)} of {self.name}",
            f"  at every float of [{claim.low}, {claim.high}], by {held.proof.how}",
            f"  {claim.implementation.contract.text}",
        ]

    def _table(self) -> list[str]:
        """What each method found."""
        lines = []
        for name, other in self.others.items():
            if "reason" in other:
                lines.append(f"  {name:12}{other['reason']}")
            else:
                degree = other["degree"] if len(other["degree"]) < 7 else f"about 10^{len(other['degree']) - 1}"
                high = float.fromhex(other["error_high"])
                lines.append(f"  {name:12}parameters {other['parameters']:<6} degree {degree:<12} error {high:.4g}")
        return lines

    def _unknown(self, reason: str, next_step: str) -> int:
        text = f"a rational near {self.name} on [{self.interval[0]}, {self.interval[1]}]"
        data: dict[str, Any] = {
            "command": "approximate",
            "claim": {"text": text, "hash": self.key},
            "verdict": "unknown",
            "reason": reason,
            "next_step": next_step,
            "seconds": round(time.monotonic() - self.start, 4),
            "evidence": None,
            "result": {},
        }
        self.saver.report(data)
        self.saver.printer("approximate unknown", f"reason: {reason}", f"next step: {next_step}")
        return UNKNOWN


def _interval(text: str) -> Interval:
    from fpsmt.floats import read_number

    words = text.split(",")
    ends = [read_number(word) for word in words]
    if len(ends) != 2 or any(isinstance(x, float) for x in ends) or not ends[0] < ends[1]:
        raise UsageError(f"--interval {text!r}: write two finite numbers LO,HI with LO < HI, e.g. --interval -1,1")
    return Fraction(ends[0]), Fraction(ends[1])


def _type(text: str) -> tuple[int, int]:
    words = text.split(",")
    if len(words) != 2 or not all(word.strip().isdigit() for word in words):
        raise UsageError(f"--type {text!r}: write two degrees M,N, e.g. --type 7,7")
    return int(words[0]), int(words[1])


def _positive(option: str, text: str) -> Fraction:
    from fpsmt.floats import read_number

    number = read_number(text)
    if isinstance(number, float) or not number > 0:
        raise UsageError(f"{option} {text!r}: write a positive number")
    return number


def _text(x: Fraction | None) -> str:
    """About this number: five digits."""
    from flint import arb

    from fpsmt.rational.polynomials import to_fmpq

    return "nothing" if x is None else str(arb(to_fmpq(x)).str(5, radius=False))


def _number(x: Fraction) -> str:
    """The nearest float64, or five digits of what is far from all of them."""
    y = _float(x)
    return repr(y) if bool(y) == bool(x) and abs(x) <= sys.float_info.max else _text(x)


def _float(x: Fraction) -> float:
    """The nearest finite float64."""
    try:
        return float(x)
    except OverflowError:
        return sys.float_info.max if x > 0 else -sys.float_info.max


def _down(x: Fraction) -> float:
    """A float ≤ x."""
    y = _float(x)
    return y if Fraction(y) <= x else math.nextafter(y, -math.inf)


def _up(x: Fraction | None) -> float:
    """A float ≥ x."""
    if x is None:
        return math.inf
    y = _float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)
