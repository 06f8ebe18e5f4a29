"""Telling inputs apart: all pairs of a 16-bit format, and Corollary 4 of paper A."""

from __future__ import annotations

from benchmarks.measure import Row, Rows, benchmark, compare, seconds, solver_seconds
from fpsmt.claims import Case, Claim, Distinguishable, Reading, Setting
from fpsmt.engines import Options, decide
from fpsmt.floats import Format, bfloat16, context, exactly, float16, largest
from fpsmt.functions import function_named, table
from fpsmt.terms import all_of, const, is_finite, mul, negation, same, var

ACTIVATIONS = (
    "cos", "sqrt1p_square", "cosh", "gaussian", "sigmoid", "tanh", "relu", "gelu", "swish", "softplus",
)  # fmt: skip


@benchmark("pairs")
def pairs() -> Rows:
    """Every two finite inputs are told apart by some affine map, for ten activations."""
    total = 0.0
    for fmt in (float16, bfloat16):
        inputs = 2 * largest(fmt).ordinal + 1
        count = len(ACTIVATIONS) * inputs * (inputs - 1) // 2
        taken = sum(seconds(prove, claim) for claim in _claims(fmt))
        total += taken
        peer = compare("z3, one pair of relu, times pairs", lambda f, n: one_pair(f) * n, fmt, count)
        yield Row(f"all {count:.1e} pairs of {fmt}, ten activations", taken, peer=peer)
    yield Row("both formats together", total, 60)


def _claims(fmt: Format) -> list[Distinguishable]:
    found = []
    for name in ACTIVATIONS:
        setting = Setting(function_named(name), context(fmt), largest(fmt, True), largest(fmt), Reading.ANY)
        table(setting.function, setting.context)  # measured elsewhere
        found.append(Distinguishable(setting))
    return found


def prove(claim: Claim) -> None:
    """Decides a claim that is true."""
    verdict = decide(claim, Options(timeout=300))
    if verdict.name != "proved":
        raise RuntimeError(f"{claim.text} is {verdict.name}")


def one_pair(fmt: Format) -> float:
    """One SMT query: some w moves 1 and the next float apart."""
    ctx, w = context(fmt), var("w", fmt)
    x = exactly(fmt, 1)
    apart = [mul(ctx, w, const(point)) for point in (x, x.next_up)]
    return solver_seconds(all_of(*map(is_finite, apart), negation(same(*apart))), "z3", "sat")


@benchmark("corollary-4")
def corollary_4() -> Rows:
    """Paper A, Corollary 4, with evidence: the slowest of four activations for each format."""
    import specs.expressive_power as specs

    times: dict[str, float] = {}
    for case in specs.corollary_4.cases:
        if case.arguments["reading"] == "finite-on-domain":
            name = case.arguments["fmt"].name
            times[name] = max(times.get(name, 0.0), seconds(_prove, specs.corollary_4.claim(case), case))
    for name, slowest in times.items():
        yield Row(f"Corollary 4 in {name}, slowest activation", slowest, 5)


def _prove(claim: Claim, case: Case) -> None:
    import proofs.expressive_power as script

    verdict = script.corollary_4(claim, Options(), **case.arguments)
    if verdict.name != case.expected:
        raise RuntimeError(f"{claim.text} is {verdict.name}")
