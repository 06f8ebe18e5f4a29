"""Certified sup norms: a best rational of type (7, 7) for tanh, beside Sollya's ``supnorm`` where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import time
from fractions import Fraction

from benchmarks.measure import Missing, Row, Rows, benchmark, compare, seconds
from fpsmt.engines.approximation import certified_sup_norm
from fpsmt.rational import Problem, Rational, named, rational
from fpsmt.rational.remez import minimax

INTERVAL = (Fraction(0), Fraction(8))
LIMIT = 120.0  #: seconds for the peer


@benchmark("rationals")
def rationals() -> Rows:
    """Search, proof and check are one number; the same rational and accuracy for the peer."""
    best = minimax(named("tanh"), INTERVAL, (7, 7), bits=128).rational
    problem = Problem(named("tanh"), rational(best), (INTERVAL,))
    peer = compare("sollya supnorm", _sollya, best)
    yield Row(
        "sup norm of a (7,7) rational against tanh, to 1e-3", seconds(certified_sup_norm, problem, repeat=3), peer=peer
    )
    yield Row("the same to 1e-10", seconds(certified_sup_norm, problem, Fraction(1, 10**10)))


def _sollya(r: Rational) -> float:
    """Sollya's supnorm takes polynomials: of the numerator p against tanh·q, relative to q where it is least."""
    program = shutil.which("sollya")
    if program is None:
        raise Missing("sollya is not installed")
    p, q = ("+".join(f"({c})*x^{k}" for k, c in enumerate(part)) for part in (r.numerator, r.denominator))
    script = f"prec = 200; supnorm({p}, tanh(x)*({q}), [0;8], absolute, 2^(-10)); quit;"
    start = time.perf_counter()
    done = subprocess.run([program], input=script, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode or "error" in done.stdout:
        raise Missing(f"sollya gave up: {done.stdout.strip()[:80]}")
    return time.perf_counter() - start
