"""Float programs that evaluate a rational: the same numbers, in one order or another.

``horner``: a₀ + x(a₁ + x(a₂ + …)); ``estrin``: pairs, and pairs of pairs, with the powers x², x⁴, …; ``powers``: xⁱ one
after the other, times aᵢ, added from the left, as a matrix of powers does; ``reciprocal``: Horner's rule, numerator
and denominator divided by the greatest power for |x| > 1, so that neither of them overflows.  Coefficients are written
so that they are rounded to nearest in the format of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from fpsmt.errors import UsageError
from fpsmt.rational.trainable import Trainable


def number(c: Fraction) -> str:
    """The decimal of a coefficient: exact where it is a float64, else to 40 digits.

    >>> number(Fraction(1, 10)), number(Fraction(-3, 8))
    ('0.1', '-0.375')
    """
    if abs(c) < 10**308 and c in (Fraction(float(c)), Fraction(repr(float(c)))):
        return repr(float(c))
    with localcontext(prec=40):
        return str(Decimal(c.numerator) / Decimal(c.denominator))


def horner(c: Sequence[str], x: str) -> str:
    text = c[-1]
    for a in reversed(c[:-1]):
        text = f"({text})*{x} + {a}"
    return text


def estrin(c: Sequence[str], x: str) -> str:
    """Uses x, and its powers x2, x4, … of the name."""
    terms, power = list(c), x
    while len(terms) > 1:
        pairs = [terms[k : k + 2] for k in range(0, len(terms), 2)]
        terms = [f"(({pair[1]})*{power} + {pair[0]})" if len(pair) == 2 else pair[0] for pair in pairs]
        power = f"({power}*{power})"
    return terms[0]


def powers(c: Sequence[str], x: str) -> str:
    text, power = c[0], x
    for a in c[1:]:
        text, power = f"{text} + {a}*{power}", f"({power}*{x})"
    return text


SCHEDULES: dict[str, Callable[[Sequence[str], str], str]] = {"horner": horner, "estrin": estrin, "powers": powers}
NAMES = (*SCHEDULES, "reciprocal")


def program_text(r: Trainable, schedule: str = "horner") -> str:
    """The text of a program (`fpsmt.terms.program_text`) for one of the schedules.

    >>> r = Trainable("A", (Fraction(0), Fraction(1), Fraction(2)), (Fraction(-1, 2),))
    >>> program_text(r)
    'z = abs(x); p = ((2.0)*x + 1.0)*x + 0.0; q = (0.5)*z + 1.0; p/q'
    >>> program_text(r, "powers")
    'z = abs(x); p = 0.0 + 1.0*x + 2.0*(x*x); q = 1.0 + 0.5*z; p/q'
    """
    if schedule not in NAMES:
        raise UsageError(f"the schedules of a rational are {', '.join(NAMES)}, not {schedule!r}")
    a = [number(c) for c in r.a]
    b = [number(abs(c) if r.version == "A" else c) for c in r.b]
    if r.version == "B":
        inner, start, z = ["0.0", *b], "", "x"
    else:
        inner, start, z = ["1.0", *b], "z = abs(x); " * (r.version == "A"), "z" if r.version == "A" else "x"
    if schedule == "reciprocal":
        return _reciprocal(r, a, b, z, start)
    write = SCHEDULES[schedule]
    below = write(inner, z)
    if r.version == "B":
        below = f"1.0 + abs({below})"
    return f"{start}p = {write(a, 'x')}; q = {below}; p/q"


def _reciprocal(r: Trainable, a: list[str], b: list[str], z: str, start: str) -> str:
    if r.version == "B" or not b:
        raise UsageError("the reciprocal schedule is for the forms unsafe and A, with a denominator")
    m, n = len(a) - 1, len(b)
    below = ["1.0", *b]
    inner = f"p = {horner(a, 'x')}; q = {horner(below, z)}; "
    # x = ±|x|: Σ aᵢxⁱ = xᵐ·Σ a_{m−i}·y^i with y = 1/x
    side = "y" if z == "x" else "abs(y)"
    outer = f"y = 1.0/x; s = {horner(a[::-1], 'y')}; w = {side}; t = {horner(below[::-1], 'w')}; "
    far = _power(m, n, z).replace("{}", "s/t")
    return f"{start}{inner}{outer}p/q if abs(x) <= 1.0 else {far}"


def _power(m: int, n: int, z: str) -> str:
    """s/t times xᵐ/zⁿ: x and z differ in sign only."""
    text = "{}"
    for _ in range(m - n):
        text = f"({text})*x"
    for _ in range(n - m):
        text = f"({text})/{z}"
    if z == "x" or min(m, n) % 2 == 0:
        return text
    return f"(({text}) if x > 0 else -({text}))"
