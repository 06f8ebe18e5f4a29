"""Implementations from short text and from JSON."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from fpsmt.errors import UsageError
from fpsmt.floats import read_number
from fpsmt.functions.implementations import (
    TEXT_READERS,
    Clamped,
    Contract,
    CorrectlyRounded,
    Implementation,
    Piece,
    Piecewise,
    WithinError,
    WithinFloats,
    WithinUlps,
    contract_from_json,
)
from fpsmt.functions.registry import function_named

HELP = (
    "write FUNCTION[:CONTRACT][:range=LO..HI][:monotone][:any-value], with CONTRACT one of ulps=K, floats=K, "
    "error=E, program(...), or pieces such as 'ulps=3 on -1..18; ulps=306 on -6..-1; error=2^-22'"
)


def implementation_named(text: str) -> Implementation:
    """An implementation from text: ``tanh``, ``tanh:ulps=2``, ``tanh:floats=1``, ``tanh:ulps=2:range=-1..1:monotone``.

    K of ulps may be any number ≥ 0 (``ulps=4.5``, ``ulps=9/2``), E of error too (``error=2^-20``).  Pieces are
    separated by semicolons, each with ``on LO..HI`` (an empty end is unbounded), the last one may do without;
    ``rounded`` is correct rounding.  ``any-value`` turns single-valuedness off.  ``program(…)`` is a float program
    (`fpsmt.terms.programs`).

    >>> implementation_named("sigmoid:ulps=3 on -1..18; error=2^-22").text
    'sigmoid:ulps=3 on -1..18; error=1/4194304'
    >>> implementation_named("tanh:ulp=2")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: cannot read 'ulp=2' in 'tanh:ulp=2': write FUNCTION[:CONTRACT][:range=LO..HI][:monotone]\
[:any-value], with CONTRACT one of ulps=K, floats=K, error=E, program(...), or pieces such as 'ulps=3 on -1..18; \
ulps=306 on -6..-1; error=2^-22'
    """
    name, *words = split_outside(text, ":")
    function = function_named(name)
    contract: Contract | None = None
    flags: dict[str, bool] = {}
    for word in words:
        if word == "monotone":
            flags["monotone"] = True
        elif word == "any-value":
            flags["single_valued"] = False
        elif word.startswith("range="):
            contract = Clamped(contract or CorrectlyRounded(), *_interval(word[6:], text))
        elif contract is None:
            contract = contract_named(word, text)
        else:
            raise UsageError(f"{text!r} has two contracts; the second is {word!r}: {HELP}")
    return Implementation(function, contract or CorrectlyRounded(), **flags)


def split_outside(text: str, mark: str) -> list[str]:
    """The parts between the marks that are not inside parentheses, stripped.

    >>> split_outside("a; f(b; c) ;d", ";")
    ['a', 'f(b; c)', 'd']
    """
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(mark, place):
            parts.append(text[start:place].strip())
            start = place + len(mark)
    return [*parts, text[start:].strip()]


def contract_named(word: str, text: str | None = None) -> Contract:
    """A contract from text such as ``ulps=2`` or ``ulps=3 on 0..; error=2^-20``; `text` is what an error quotes."""
    text = word if text is None else text
    pieces = []
    for part in split_outside(word, ";"):
        basic, *on = split_outside(part, " on ")
        where = on[0] if len(on) == 1 else ""
        if len(on) > 1:
            raise UsageError(f"cannot read {part!r} in {text!r}: {HELP}")
        pieces.append(Piece(*(_interval(where, text) if where else (None, None)), _basic(basic.strip(), text)))
    if len(pieces) == 1 and pieces[0].low is None and pieces[0].high is None:
        return pieces[0].contract
    return Piecewise(tuple(pieces))


def _basic(word: str, text: str) -> Contract:
    if word == "rounded":
        return CorrectlyRounded()
    kind, _, number = word.partition("=")
    if kind == "floats" and re.fullmatch(r"\d+", number):
        return WithinFloats(int(number))
    if kind == "ulps" and number:
        return WithinUlps(_number(number, text))
    if kind == "error" and number:
        return WithinError(_number(number, text))
    kind, parenthesis, _ = word.partition("(")
    if parenthesis and word.endswith(")") and kind in TEXT_READERS:
        return TEXT_READERS[kind](word[len(kind) + 1 : -1])
    raise UsageError(f"cannot read {word!r} in {text!r}: {HELP}")


def _number(word: str, text: str) -> Fraction:
    value = read_number(word)
    if isinstance(value, float):
        if value == 0:
            return Fraction(0)
        raise UsageError(f"{word!r} in {text!r} must be a finite number")
    return value


def _interval(word: str, text: str) -> tuple[Fraction | None, Fraction | None]:
    low, dots, high = word.partition("..")
    if not dots:
        raise UsageError(f"cannot read the interval {word!r} in {text!r}: write LO..HI")
    return (_number(low, text) if low.strip() else None), (_number(high, text) if high.strip() else None)


def implementation_from_json(data: dict[str, Any]) -> Implementation:
    """Reads what `Implementation.to_json` wrote; `UsageError` on anything else."""
    try:
        flags = data["single_valued"], data["monotone"]
        if not all(isinstance(flag, bool) for flag in flags):
            raise UsageError(f"not an implementation: single_valued and monotone are true or false, not {flags}")
        return Implementation(function_named(data["function"]), contract_from_json(data["contract"]), *flags)
    except KeyError as error:
        raise UsageError(f"not an implementation: {error} is missing in {str(data)[:200]}") from error
