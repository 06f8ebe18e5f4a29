"""Exact numbers as text for people."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from fpsmt.rational.polynomials import to_fmpq

MOST = 20  #: characters of an exact text


def number_text(x: Fraction) -> str:
    """A short exact text where there is one, else a decimal to ten digits after ``about``.

    >>> number_text(Fraction(7, 2 * 10**8)), number_text(Fraction(1, 3)), number_text(Fraction(-12))
    ('3.5e-8', '1/3', '-12')
    >>> number_text(Fraction(2, 3**60))
    'about 4.717964975e-29'
    """
    x = Fraction(x)
    for text in (_decimal(x), str(x)):
        if text is not None and len(text) <= MOST:
            return text
    return f"about {arb(to_fmpq(x)).str(10, radius=False)}"


def _decimal(x: Fraction) -> str | None:
    """The exact decimal, when x is one of few digits."""
    rest, twos, fives = x.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return None
    places = max(twos, fives)
    digits = abs(x.numerator) * 10**places // x.denominator
    if digits == 0:
        return "0"
    while digits % 10 == 0:
        digits, places = digits // 10, places - 1
    word, sign = str(digits), "-" if x < 0 else ""
    exponent = len(word) - 1 - places
    if -5 < exponent < 16:
        if places <= 0:
            return sign + word + "0" * -places
        word = word.rjust(places + 1, "0")
        return f"{sign}{word[:-places]}.{word[-places:]}"
    return f"{sign}{word[0]}{'.' + word[1:] if word[1:] else ''}e{exponent}"
