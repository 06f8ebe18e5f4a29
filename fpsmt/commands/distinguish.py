"""``fpsmt distinguish``: which inputs an activation can tell apart through some affine map."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    EXIT_OF,
    REFUTED,
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
from fpsmt.commands.options import read_implementation, read_interval
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.claims.distinguishability import Setting
    from fpsmt.floats import Float, Format

MOST_FOR_CLASSES = 30.0  #: seconds
SHOWN = 8  #: classes, and values of a class, that are printed


def distinguish_command(
    format: Annotated[str, typer.Option("--format", metavar="F", help="Format and rounding, e.g. float16.")] = "",
    activation: Annotated[
        str, typer.Option("--activation", metavar="A", help="A function, or an implementation such as tanh:floats=1.")
    ] = "",
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="LO:HI", help="Inputs from LO to HI (all finite ones).")
    ] = None,
    affine: Annotated[
        str,
        typer.Option("--affine", metavar="READING", help="Maps that count: finite-on-domain, finite-on-pair or any."),
    ] = "finite-on-domain",
    ulps: Annotated[
        str | None, typer.Option("--ulps", metavar="K", help="For every implementation within K ulps.")
    ] = None,
    pair: Annotated[
        str | None, typer.Option("--pair", metavar="X,X'", help="These two inputs only, rounded to the format.")
    ] = None,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 120.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Accepted; one process is used.")] = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Is there for all inputs x ≠ x' a map w⊗x⊕b after which the activation gives different results?

    Proved with the maps, or refuted with a pair that no map tells apart, and with the classes of inputs that stay
    together.  --pair asks about two inputs and gives a map; numbers that round to one value are one input.

    \b
    Examples:
      fpsmt distinguish --format float16 --activation cos --domain=-8192:8192
      fpsmt distinguish --format bfloat16 --activation identity --pair 65536,65792
    """
    from fpsmt.claims.distinguishability import Setting, reading

    check_limits(timeout, jobs)
    use, ctx = read_implementation(activation, ulps, format)
    if not use.single_valued or use.monotone:
        raise UsageError(f"{activation}: implementations here are single-valued, without further promises")
    low, high = read_interval(ctx, domain)
    setting = Setting(use.function, ctx, low, high, reading(affine), use.contract)
    saver = Saver.of("distinguish", json_to, out, no_save)
    start = time.monotonic()
    try:
        with time_limit(timeout):
            data, code, lines = _pair(setting, pair, timeout) if pair is not None else _all(setting, timeout)
    except TimeLimit:
        claim = {"text": f"inputs are told apart ({setting})", "hash": short_hash(f"{setting}, {pair}")}
        reason = f"the time limit of {timeout:g} s was passed"
        data, code = {"claim": claim, "verdict": "unknown", "reason": reason, "evidence": None, "result": {}}, UNKNOWN
        lines = ["distinguish unknown", f"reason: {reason}", "next step: raise --timeout or narrow --domain"]
    data = {"command": "distinguish", **data, "seconds": round(time.monotonic() - start, 4)}
    saver.report(data)
    saver.printer(*lines)
    if data["verdict"] != "refuted" or "statement" in data["claim"]:  # two equal numbers leave nothing to check later
        saver.save(data["claim"]["hash"], data)
    return code


Answer = tuple[dict[str, Any], int, list[str]]


def _all(setting: Setting, timeout: float) -> Answer:
    from fpsmt.claims.distinguishability import Distinguishable
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options, decide
    from fpsmt.engines.classes import classes
    from fpsmt.kernel import Proved, Refuted, verdict_to_json

    start = time.monotonic()
    with Progress("telling inputs apart") as progress:
        options = Options(timeout=0.6 * timeout, progress=progress.update)
        verdict = decide(Distinguishable(setting), options)
        inputs = setting.high.ordinal - setting.low.ordinal + 1
        told = inputs if verdict.name == "proved" else None
        result: dict[str, Any] = {"inputs": inputs, "classes": [], "values": told}
        found = None
        if isinstance(verdict, Refuted):
            result["pair"] = [verdict.counterexample["x"], verdict.counterexample["y"]]
            left = min(0.9 * timeout - (time.monotonic() - start), MOST_FOR_CLASSES)
            try:
                found = classes(setting, options.within(max(left, 0.1)))
            except (Unsupported, UsageError) as why:
                say(f"note: {why}")
    if found is not None:
        result |= {
            "classes": [[x.hex for x in members] for members in found.classes],
            "values": found.alone,
            "classes_settled": found.settled,
        }
    lines = [f"distinguish {verdict.name}", f"{verdict.name}: {verdict.claim.text}"]
    if isinstance(verdict, Proved):
        lines[0] += f" inputs={inputs} maps={verdict.evidence.found.get('maps', '?')}"
        lines += [f"  {line}" for line in verdict.evidence.lines()]
    else:
        if isinstance(verdict, Refuted):
            lines[0] += f" {result['pair'][0]} {result['pair'][1]}"
        lines += [f"  {line}" for line in str(verdict).split("\n")[1:]]
    if found is not None:
        lines += _class_lines(found)
    return {**verdict_to_json(verdict), "result": result}, EXIT_OF[verdict.name], lines


def _class_lines(found: Any) -> list[str]:
    together = sum(map(len, found.classes))
    unsettled = "" if found.settled else " (not settled: some of these may be told apart)"
    lines = [f"{found.alone} of {found.inputs} inputs are told apart from all others; {together} stay together in "
             f"{len(found.classes)} classes{unsettled}:"]  # fmt: skip
    for members in found.classes[:SHOWN]:
        more = f" … ({len(members)})" if len(members) > SHOWN else ""
        lines.append("  {" + ", ".join(x.decimal for x in members[:SHOWN]) + more + "}")
    return lines + ([f"  … {len(found.classes) - SHOWN} more"] if len(found.classes) > SHOWN else [])


def _pair(setting: Setting, text: str, timeout: float) -> Answer:
    from fpsmt.claims.distinguishability import Separable
    from fpsmt.engines import Options, decide
    from fpsmt.kernel import Proved, verdict_to_json

    x, y = _inputs(setting.context.format, text)
    if x.fraction == y.fraction:
        reason = f"both numbers are the value {x!r}: one input"
        claim = {"text": f"{text} are two inputs of {setting.context.format}", "hash": short_hash(f"{text} {setting}")}
        data = {"claim": claim, "verdict": "refuted", "reason": reason, "evidence": None}
        return {**data, "result": {"pair": [x.hex, y.hex], "map": None}}, REFUTED, [f"pair same {x.hex}", reason]
    verdict = decide(Separable(setting, x, y), Options(timeout=0.9 * timeout))
    result: dict[str, Any] = {"pair": [x.hex, y.hex], "map": None}
    word = {"proved": "apart", "refuted": "together", "unknown": "unknown"}[verdict.name]
    lines = [f"pair {word}", f"{verdict.name}: {verdict.claim.text}"]
    if isinstance(verdict, Proved):
        maps = verdict.evidence.data["maps"]
        result |= {"map": {"w": maps[0][0], "b": maps[0][1]}, "maps": [{"w": w, "b": b} for w, b in maps]}
        lines[0] += f" w={maps[0][0]} b={maps[0][1]}" if len(maps) == 1 else f" maps={len(maps)}"
        lines += _map_lines(verdict.claim, maps)
    else:
        lines += [f"  {line}" for line in str(verdict).split("\n")[1:]]
    return {**verdict_to_json(verdict), "result": result}, EXIT_OF[verdict.name], lines


def _map_lines(claim: Any, maps: list[list[str]]) -> list[str]:
    replayed = claim.opposite.replay({"maps": maps})
    lines = [f"  {line}" for line in replayed.lines]
    return lines if len(lines) <= 3 * SHOWN else [*lines[: 3 * SHOWN], f"  … {len(maps)} maps in all", lines[-1]]


def _inputs(fmt: Format, text: str) -> tuple[Float, Float]:
    from fpsmt.floats import nearest, read_number

    words = text.split(",")
    if len(words) != 2:
        raise UsageError(f"--pair {text}: write X,X', e.g. --pair 1,1.5")
    found = []
    for word in words:
        number = read_number(word)
        if isinstance(number, float) and number != 0:
            raise UsageError(f"--pair {text}: inputs are finite numbers")
        value = nearest(fmt, 0 if isinstance(number, float) else number)
        if not value.is_finite:
            raise UsageError(f"--pair {text}: {word} is beyond the largest {fmt}")
        if value.fraction != number:
            say(f"note: {word} is not a value of {fmt}: rounded to nearest, {value.decimal} = {value.hex}")
        found.append(value)
    return found[0], found[1]
