"""``fpsmt approximate``: a rational, or a composition of rationals, with a certified error."""

from __future__ import annotations

import math
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
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.engines import Options
    from fpsmt.engines.approximation import Best
    from fpsmt.kernel import Proved
    from fpsmt.rational import Formula, Interval, SupNormBounds

METHODS = ("minimax", "network", "aaa")
LARGE = Fraction(1, 10**9)  #: errors of networks that one enclosure reaches in seconds
MOST_DEGREE = 40  #: of numerator and denominator, when the type is searched for


def approximate_command(
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="E.g. tanh, gelu, abs, 'root(3)'.")],
    interval: Annotated[str, typer.Option("--interval", metavar="LO,HI", help="Where, ends included.")],
    error: Annotated[str | None, typer.Option("--error", metavar="E", help="Largest error allowed.")] = None,
    type: Annotated[str | None, typer.Option("--type", metavar="M,N", help="Degrees above and below.")] = None,
    relative: Annotated[bool, typer.Option("--relative", help="The error is relative to the function.")] = False,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="minimax: best of a type; network: a composition; aaa.")
    ] = "minimax",
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

    minimax also proves how far any other rational of the type must be.  Exit code 3 when the error asked for is not
    reached, or when nothing is proved in time.
    """
    check_limits(timeout, jobs)
    saver = Saver.of("approximate", json_to, out, no_save)
    if law:
        from fpsmt.commands.size_law import size_law

        if error is not None or type is not None or relative:
            raise UsageError("--law has errors of its own: leave --error, --type and --relative out")
        return size_law(function, max(map(abs, _interval(interval))), timeout, plot, saver)
    return _Run(function, interval, error, type, relative, method, gap, saver, timeout, plot).run()


class _Run:
    def __init__(
        self,
        function: str,
        interval: str,
        error: str | None,
        type: str | None,
        relative: bool,
        method: str,
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
        self.error = None if error is None else _positive("--error", error)
        self.type = None if type is None else _type(type)
        self.gap = _positive("--gap", gap)
        self.relative, self.method, self.saver, self.timeout, self.plot = relative, method, saver, timeout, plot
        self.start = time.monotonic()

    def run(self) -> int:
        from fpsmt.display.progress import Progress
        from fpsmt.engines import Options

        try:
            with time_limit(self.timeout), Progress(f"approximating {self.name}") as progress:
                options = Options(timeout=self.timeout, progress=progress.update)
                if self.method == "network":
                    return self._network(options)
                if self.method == "aaa":
                    return self._aaa(options)
                return self._minimax(options)
        except TimeLimit:
            return self._unknown(f"the time limit of {self.timeout:g} s was passed", "raise --timeout")
        except Unsupported as reason:
            return self._unknown(str(reason), "change the interval, the type or the method")

    def _minimax(self, options: Options) -> int:
        from fpsmt.engines.approximation import certified_minimax

        types = [self.type] if self.type is not None else [(n, n) for n in range(1, MOST_DEGREE + 1)]
        reasons: list[str] = []
        for wanted in types:
            options.report(f"{self.name}: type {wanted[0]},{wanted[1]}")
            try:
                best = certified_minimax(self.target, self.interval, wanted, self.relative, self.gap, options)
            except Unsupported as reason:
                if self.type is not None:
                    raise
                reasons.append(str(reason))
                continue
            if self.error is None or (best.bounds.high is not None and best.bounds.high <= self.error):
                return self._report(best.upper, best.bounds, best)
        raise Unsupported(f"no type up to ({MOST_DEGREE}, {MOST_DEGREE}) has this error" + "".join(
            f"; {reason}" for reason in reasons[-1:]
        ))  # fmt: skip

    def _aaa(self, options: Options) -> int:
        """Rationals through values of the function, certified afterwards."""
        from fpsmt.engines.approximation import certified_sup_norm
        from fpsmt.rational import Problem, rational, sup_norm
        from fpsmt.rational.aaa import aaa

        degrees = [max(self.type)] if self.type is not None else range(1, MOST_DEGREE + 1)
        reasons: list[str] = []
        for n in degrees:
            options.report(f"{self.name}: AAA of type {n},{n}")
            found = rational(aaa(self.target, self.interval, n))
            problem = Problem(self.target, found, (self.interval,), self.relative)
            try:
                if self.error is not None:
                    quick = sup_norm(problem, goal=self.error, seconds=self.timeout / 10)
                    if quick.high is None or quick.high > self.error:
                        continue
                bounds, proof = certified_sup_norm(problem, self.gap, options)
            except Unsupported as reason:
                reasons.append(f"type {n},{n}: {reason}")
                continue
            if self.error is None or (bounds.high is not None and bounds.high <= self.error):
                return self._report(proof, bounds, None)
        raise Unsupported("; ".join(reasons[-1:]) or f"no type up to ({MOST_DEGREE}, {MOST_DEGREE}) has this error")

    def _network(self, options: Options) -> int:
        """The error is enclosed between two bounds where one enclosure is enough, and proved part by part elsewhere."""
        from fpsmt.claims import SupNorm
        from fpsmt.engines.approximation import certified_sup_norm
        from fpsmt.engines.rational_networks import certified_network
        from fpsmt.rational import Problem, SupNormBounds
        from fpsmt.rational.activations import network
        from fpsmt.rational.supnorm import error_at, lower_fraction

        assert self.error is not None
        size, name = max(map(abs, self.interval)), self.target.calls[0]
        formula = network(name, size, self.error)
        if self.error >= LARGE:
            bounds, proof = certified_sup_norm(Problem(self.target, formula, (self.interval,)), self.gap, options)
        else:
            proof = certified_network(name, size, self.error, options)
            assert isinstance(proof.claim, SupNorm)
            problem = proof.claim.problem
            places = [size * k / 4 for k in range(-4, 5)]
            low, at = max((lower_fraction(error_at(problem, x, 20)), x) for x in places)
            bounds = SupNormBounds(problem, max(low, Fraction(0)), self.error, at, (), 0, 0, 0)
        if bounds.high is None or bounds.high > self.error:
            raise Unsupported(f"the network has an error of up to {_text(bounds.high)}, more than asked for")
        return self._report(proof, bounds, None)

    # -- output -----------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        asked = [self.name, self.interval, self.error, self.type, self.relative, self.method, self.gap]
        return short_hash(str(asked))

    def _report(self, proof: Proved, bounds: SupNormBounds, best: Best | None) -> int:
        from fpsmt.kernel import verdict_to_json

        formula = bounds.problem.approximation
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
        data = {"command": "approximate", **verdict_to_json(proof), "result": result}
        data["seconds"] = round(time.monotonic() - self.start, 4)
        self.saver.report(data)
        self.saver.printer(*self._lines(proof, bounds, best, formula))
        self.saver.save(self.key, data)
        if self.plot is not None:
            from fpsmt.commands.error_curve import draw_error

            draw_error(self.name, bounds, Path(self.plot))
        return PROVED

    def _lines(self, proof: Proved, bounds: SupNormBounds, best: Best | None, formula: Formula) -> list[str]:
        from fpsmt.claims import BestError

        shape = f"type {best.rational.type[0]},{best.rational.type[1]}" if best is not None else (
            f"parameters {formula.parameters} steps {len(formula.steps)} depth {formula.depth}"
        )  # fmt: skip
        lines = [
            f"approximate error {_text(bounds.low)} {_text(bounds.high)} {shape}",
            f"proved: {proof.claim.text}",
            f"  by {proof.how}" + (f" on {bounds.leaves} intervals" if bounds.trees else "")
            + f"; {'largest near' if bounds.trees else 'the lower bound is at'} x = {float(bounds.at):.6g}",
        ]
        if best is not None:
            assert isinstance(best.lower.claim, BestError)
            lines.append(f"proved: no rational of this type has an error below {_text(best.lower.claim.bound)}")
            for name, numbers in (("numerator", best.rational.numerator), ("denominator", best.rational.denominator)):
                lines += [f"{name}, low to high"] + [f"  {float(c)!r}" for c in numbers]
            lines.append("the coefficients are exact in the result; above they are rounded")
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


def _down(x: Fraction) -> float:
    """A float ≤ x."""
    y = float(x)
    return y if Fraction(y) <= x else math.nextafter(y, -math.inf)


def _up(x: Fraction | None) -> float:
    """A float ≥ x."""
    if x is None:
        return math.inf
    y = float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)
