"""Certified sup norms beside Sollya's ``supnorm`` where it is installed: time, and how near the two bounds are."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from fractions import Fraction

from benchmarks.measure import Peer, Row, Rows, benchmark, seconds
from fpsmt.engines.approximation import certified_sup_norm
from fpsmt.rational import Interval, Problem, Rational, SupNormBounds, named, rational
from fpsmt.rational.remez import minimax

LIMIT = 300.0  #: seconds for the peer
CASES = (
    ("tanh", (Fraction(0), Fraction(8)), (7, 7), 10),
    ("tanh", (Fraction(0), Fraction(8)), (7, 7), 33),
    ("exp", (Fraction(-1), Fraction(1)), (10, 0), 10),
)


@benchmark("rationals")
def rationals() -> Rows:
    """Search, proof and check are one number; the same function, interval and accuracy for the peer.

    Its time is the target for rationals; polynomials are what it is made for."""
    for name, interval, type, bits in CASES:
        best, gap = minimax(named(name), interval, type).rational, Fraction(1, 1 << bits)
        problem = Problem(named(name), rational(best), (interval,))
        bounds, _ = certified_sup_norm(problem, gap)
        work = f"sup norm, type {type[0]},{type[1]} for {name}: bounds within {_width(bounds.low, bounds.high):.0e}"
        taken = seconds(certified_sup_norm, problem, gap, repeat=3)
        peer = _sollya(name, best, interval, bits, bounds)
        target = peer[1] if isinstance(peer[1], float) and not best.is_polynomial else None
        yield Row(work, taken, target, peer)


def _width(low: Fraction, high: Fraction | None) -> float:
    return float("inf") if high is None else float(high / low - 1)


def _sollya(name: str, r: Rational, interval: Interval, bits: int, ours: SupNormBounds) -> Peer:
    """Sollya measures a polynomial p against a function f: p = r, or p = 0 and f − r for a proper rational."""
    what = "sollya supnorm"
    program = shutil.which("sollya")
    if program is None:
        return what, "sollya is not installed"
    r = Rational.of(r.p / r.q[0], r.q / r.q[0])
    p, q = ("+".join(f"({c})*x^{k}" for k, c in enumerate(part)) for part in (r.numerator, r.denominator))
    pair = f"{p}, {name}(x)" if r.is_polynomial else f"0, {name}(x) - ({p})/({q})"
    script = f"supnorm({pair}, [{interval[0]};{interval[1]}], absolute, 2^(-{bits}));\nquit;\n"
    start = time.perf_counter()
    try:
        done = subprocess.run([program], input=script, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return what, f"no answer in {LIMIT:g} s"
    taken = time.perf_counter() - start
    found = re.search(r"\[([0-9.e+-]+);([0-9.e+-]+)\]", done.stdout)
    if done.returncode or found is None:
        return what, f"sollya gave up: {done.stdout.strip()[:80]}"
    low, high = Fraction(found[1]), Fraction(found[2])
    if ours.high is None or low > ours.high or ours.low > high:
        return what, f"other bounds: [{float(low)}, {float(high)}]"
    return f"{what}, within {_width(low, high):.0e}", taken
