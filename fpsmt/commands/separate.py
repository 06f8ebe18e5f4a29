"""``fpsmt separate``: separation points of an activation, or windows where every implementation has one."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
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
from fpsmt.commands.options import read_implementation, read_interval
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.separation import Run
    from fpsmt.functions import Implementation

SHOWN = 12  #: points or windows that are printed
BARS = 40  #: characters of the longest bar


def separate_command(
    format: Annotated[str, typer.Option("--format", metavar="F", help="Format and rounding, e.g. bfloat16.")] = "",
    activation: Annotated[
        str, typer.Option("--activation", metavar="A", help="A function, or an implementation such as tanh:floats=1.")
    ] = "",
    ulps: Annotated[
        str | None, typer.Option("--ulps", metavar="K", help="Every implementation within K ulps instead.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="LO:HI", help="Floats from LO to HI (all finite ones).")
    ] = None,
    break_even: Annotated[
        bool, typer.Option("--break-even", help="The largest K that leaves every implementation a separation point.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.svg", help="Draws points by binade (needs matplotlib).")
    ] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 300.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Floats η with σ(η⁻) ∉ {σ(η), σ(η⁺)}.

    Correctly rounded: all of them, counted by binade; in formats of more than 16 bits binade by binade, as far as the
    time goes.  Within K ulps: the least windows of consecutive floats in which every implementation has one, wherever
    it is, and whether there is one in the whole domain; in large formats the windows that begin at powers of two.

    \b
    Examples:
      fpsmt separate --format bfloat16 --activation sigmoid
      fpsmt separate --format float16 --activation tanh --ulps 10 --domain 0.5:1
    """
    check_limits(timeout, jobs)
    use, ctx = read_implementation(activation, ulps, format)
    low, high = read_interval(ctx, domain)
    from fpsmt.claims.separation import Run

    run = Run(use, ctx, low, high)
    saver = Saver.of("separate", json_to, out, no_save)
    if plot is not None and not plot.endswith(".svg"):
        raise UsageError(f"--plot {plot}: name a file that ends in .svg")
    work = _break_even if break_even else _windows if _chooses(use) else _points
    start = time.monotonic()
    try:
        with time_limit(timeout):
            data, code, lines, series = work(run, timeout)
    except TimeLimit:
        reason = f"the time limit of {timeout:g} s was passed"
        claim = {"text": f"separation points of {run}", "hash": short_hash(str(run))}
        data = {"claim": claim, "verdict": "unknown", "reason": reason, "evidence": None, "result": {}}
        code, series = UNKNOWN, {}
        lines = ["separate unknown", f"reason: {reason}", "next step: narrow --domain or raise --timeout"]
    data = {"command": "separate", **data, "seconds": round(time.monotonic() - start, 4)}
    saver.report(data)
    saver.printer(*lines)
    saver.save(data["claim"]["hash"], data)
    if plot is not None:
        from fpsmt.display.binades import draw

        draw(series, f"separation points: {run}", plot)
    return code


def _chooses(use: Implementation) -> bool:
    from fpsmt.functions import CorrectlyRounded

    return use.contract != CorrectlyRounded()


Binade = tuple[int, int]  #: sign, exponent
Answer = tuple[dict[str, Any], int, list[str], dict[Binade, int]]


def _points(run: Run, timeout: float) -> Answer:
    from fpsmt.claims.places import MAX_BITS
    from fpsmt.display.progress import Progress
    from fpsmt.engines import decide
    from fpsmt.engines.separation_points import separation_points
    from fpsmt.kernel import verdict_to_json

    if run.context.format.bits > MAX_BITS and len(run) > 1 << MAX_BITS:
        return _by_binade(run, timeout)
    with Progress(f"looking at {len(run)} floats"):
        claim = separation_points(run)
        verdict = decide(claim)
    places = [p for first, last in claim.places for p in range(first, last + 1)]
    points = [run.at(p) for p in places]
    binades = _count_by_binade(run, places)
    result = {"count": claim.count, "exhaustive": True, "points": [x.hex for x in points], "binades": _listed(binades)}
    lines = [f"separate exact {claim.count}", f"{claim.count} separation points among {len(run)} floats: {run}"]
    lines += [f"  {x!r}" for x in points[:SHOWN]] + ([f"  … {len(points) - SHOWN} more"] if len(points) > SHOWN else [])
    return {**verdict_to_json(verdict), "result": result}, EXIT_OF[verdict.name], lines + _bars(binades), binades


def _by_binade(run: Run, timeout: float) -> Answer:
    from fpsmt.claims.separation import Run, SeparationCount
    from fpsmt.display.progress import Progress
    from fpsmt.engines import decide
    from fpsmt.engines.separation_points import count_points
    from fpsmt.kernel import verdict_to_json

    fmt, start = run.context.format, time.monotonic()
    found: list[dict[str, Any]] = []
    left, verdict = 0, None
    binades: dict[Binade, int] = {}
    width = 1 << fmt.fraction_bits
    starts = sorted(range(0, fmt.largest_code + 1, width), key=lambda p: abs(p - (fmt.bias << fmt.fraction_bits)))
    with Progress("counting") as progress:
        for place in starts:
            for sign in (1, -1):
                ends = sorted((sign * place, sign * min(place + width, fmt.largest_code)))
                low, high = max(ends[0], run.low.ordinal), min(ends[1], run.high.ordinal)
                if high - low < 2:
                    continue
                if time.monotonic() - start > 0.8 * timeout:
                    left += 1
                    continue
                progress.update(f"counting from {run.at(low)} to {run.at(high)}")
                part = Run(run.implementation, run.context, run.at(low), run.at(high))
                count = count_points(part)
                found.append({"low": part.low.hex, "high": part.high.hex, "count": count, "exhaustive": True})
                binades[sign, (place >> fmt.fraction_bits) - fmt.bias] = count
                if verdict is None:
                    verdict = decide(SeparationCount(part, count))
    total = sum(part["count"] for part in found)
    result = {"count": total, "exhaustive": not left, "binades": found, "binades_left": left}
    reason = f"{left} binades were not visited in {timeout:g} s" if left else ""
    lines = [f"separate {'exact' if not left else 'partial'} {total}"]
    lines += [f"inside {len(found)} binades, each looked at float by float (ends not counted): {run}"]
    lines += [f"  [{p['low']}, {p['high']}]: {p['count']}" for p in found]
    lines += [f"  {reason}"] if reason else []
    assert verdict is not None
    return {**verdict_to_json(verdict), "result": result}, UNKNOWN if left else PROVED, lines, binades


def _windows(run: Run, timeout: float) -> Answer:
    from fpsmt.claims.adversary import MOST_HELD
    from fpsmt.claims.separation import AlwaysSeparates
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options, decide
    from fpsmt.engines.separation_points import landmark_windows, windows
    from fpsmt.kernel import verdict_to_json

    small = len(run) <= MOST_HELD >> 4
    with Progress(f"looking for windows among {len(run)} floats"):
        verdict = decide(AlwaysSeparates(run), Options(timeout=timeout))
        found = [(int(a), int(b)) for a, b in windows(run)] if small else landmark_windows(run)
    shown = [{"low": run.at(a).hex, "high": run.at(b).hex, "floats": b - a + 1} for a, b in found]
    result: dict[str, Any] = {"count": len(found), "least": small, "windows": shown}
    word = {"proved": "always", "refuted": "avoidable", "unknown": "unknown"}[verdict.name]
    lines = [f"separate {word} windows {len(found)}", f"{verdict.name}: {verdict.claim.text}"]
    lines += [f"  {line}" for line in str(verdict).split("\n")[1:6]] if verdict.name != "proved" else []
    if found:
        lengths = sorted(b - a + 1 for a, b in found)
        kind = "least windows" if small else "windows that begin at powers of two"
        lines.append(f"{len(found)} {kind} in which every implementation has one: {lengths[0]} to {lengths[-1]} floats")
        shortest = sorted(found, key=lambda w: (w[1] - w[0], abs(w[0])))[:SHOWN]
        lines += [f"  [{run.at(a)}, {run.at(b)}]: {b - a + 1} floats" for a, b in shortest]
    binades = _count_by_binade(run, [a for a, _ in found])
    return {**verdict_to_json(verdict), "result": result}, EXIT_OF[verdict.name], lines + _bars(binades), binades


def _break_even(run: Run, timeout: float) -> Answer:
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.engines.separation_points import break_even
    from fpsmt.kernel import verdict_to_json

    with Progress(f"bisecting {run.implementation.function.name}") as progress:
        options = Options(timeout=timeout, progress=progress.update)
        found = break_even(run.implementation.function, run.context, run.low, run.high, options)
    verdict = found.holds if found.holds is not None else found.fails
    assert verdict is not None
    refuted = None if found.fails is None else verdict_to_json(found.fails)
    word = "exact" if found.fails is not None else "least"
    lines = [f"separate break-even {word} {found.ulps}", f"{verdict.name}: {verdict.claim.text}"]
    if found.fails is None:
        lines.append("more ulps make no sense: beyond that 0 is allowed almost everywhere")
    elif found.holds is not None:
        lines.append(f"{found.fails.name}: {found.fails.claim.text}")
        lines += [f"  {line}" for line in str(found.fails).split("\n")[1:8]]
    result = {"ulps": found.ulps, "exact": found.fails is not None, "one_more": refuted}
    return {**verdict_to_json(verdict), "result": result}, EXIT_OF[verdict.name], lines, {}


def _count_by_binade(run: Run, places: list[int]) -> dict[Binade, int]:
    """How many places lie in each binade; the subnormals count as the one below the least."""
    fmt = run.context.format
    return dict(Counter((1 if p >= 0 else -1, (abs(p) >> fmt.fraction_bits) - fmt.bias) for p in places))


def _listed(binades: dict[Binade, int]) -> list[dict[str, int]]:
    return [{"sign": sign, "exponent": exponent, "count": n} for (sign, exponent), n in sorted(binades.items())]


def _bars(binades: dict[Binade, int]) -> list[str]:
    """A bar for each binade near 1, on both sides."""
    near = {key: n for key, n in binades.items() if abs(key[1]) <= 6}
    if not near:
        return []
    most = max(near.values())
    lines = ["by binade near 1:"]
    for sign, exponent in sorted(near, key=lambda key: key[0] * (key[1] + 100)):
        count = near[sign, exponent]
        lines.append(f"  {'-' if sign < 0 else '+'}2^{exponent:<3} {count:>8} {'#' * max(1, BARS * count // most)}")
    return lines
