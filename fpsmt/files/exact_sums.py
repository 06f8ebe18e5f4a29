"""A sum under a schedule by exact fractions that are rounded once at each node, in any binary format.

Where the addition of a numpy or ml_dtypes scalar type rounds in the same way, that is used instead.  Imports
nothing of the package, because this text is pasted into reproducers.
"""

from __future__ import annotations

from fractions import Fraction
from math import copysign, inf, isinf, nan
from typing import Any, NamedTuple

import numpy as np


class Rules(NamedTuple):
    """A format and how results are rounded into it."""

    format: str
    exponent_bits: int
    precision: int  # with the hidden bit
    bias: int
    largest_code: int
    has_infinity: bool
    nan: str  # "above", "negative-zero" or "none"
    mode: str  # RNE, RNA, RTP, RTN or RTZ
    overflow: str  # infinity, saturate or nan
    subnormals: str  # gradual, flush-inputs, flush-outputs or flush
    dtype: str  # the scalar type whose + is this rounding, or ""


class Value(NamedTuple):
    """A number of a format: a nonzero Fraction, or a float that is ±0.0, ±inf or nan."""

    number: Fraction | float
    rules: Rules


METHODS: set[str] = set()  # how additions were done


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def binade(size: Fraction) -> int:
    """⌊log₂ size⌋."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if power(guess) <= size else guess - 1


def largest(rules: Rules) -> Fraction:
    field, fraction = divmod(rules.largest_code, 1 << (rules.precision - 1))
    hidden = 1 << (rules.precision - 1) if field else 0
    return (fraction + hidden) * power(max(field, 1) - rules.bias - rules.precision + 1)


def multiple(size: Fraction, quantum: Fraction, negative: bool, mode: str) -> Fraction:
    """size, a magnitude, rounded to a multiple of quantum."""
    count, rest = divmod(size / quantum, 1)
    up = {
        "RNE": 2 * rest > 1 or (2 * rest == 1 and count % 2 == 1),
        "RNA": 2 * rest >= 1,
        "RTP": rest > 0 and not negative,
        "RTN": rest > 0 and negative,
        "RTZ": False,
    }[mode]
    return (count + up) * quantum


def zero(rules: Rules, negative: bool) -> Value:
    return Value(-0.0 if negative and rules.nan != "negative-zero" else 0.0, rules)


def beyond(rules: Rules, negative: bool, finite: bool) -> Value:
    """The result of overflow, or of an exactly infinite result."""
    size: Fraction | float = inf
    short = rules.mode == "RTZ" or rules.mode == ("RTP" if negative else "RTN")
    if not finite and rules.has_infinity:
        pass
    elif rules.overflow == "nan":
        return Value(nan, rules)
    elif rules.overflow == "saturate" or short:
        size = largest(rules)
    return Value(-size if negative else size, rules)


def rounded(rules: Rules, x: Fraction) -> Value:
    """A nonzero real number rounded once."""
    negative, size = x < 0, abs(x)
    emin, steps = 1 - rules.bias, rules.precision - 1
    exponent = binade(size)
    near = multiple(size, power(max(exponent, emin) - steps), negative, rules.mode)
    if exponent < emin and rules.subnormals in ("flush-outputs", "flush"):
        unbounded = multiple(size, power(exponent - steps), negative, rules.mode)
        near = near if unbounded >= power(emin) else Fraction(0)
    if near == 0:
        return zero(rules, negative)
    if near > largest(rules):
        return beyond(rules, negative, finite=True)
    return Value(-near if negative else near, rules)


def is_negative(x: Fraction | float) -> bool:
    return x < 0 if isinstance(x, Fraction) else copysign(1.0, x) < 0


def as_read(value: Value, rules: Rules) -> Fraction | float:
    """An operand: subnormals are zeros where the rules flush inputs."""
    x = value.number
    tiny = isinstance(x, Fraction) and abs(x) < power(1 - value.rules.bias)
    if tiny and rules.subnormals in ("flush-inputs", "flush"):
        return zero(value.rules, x < 0).number
    return x


def not_a_number(rules: Rules) -> Value:
    if rules.nan == "none":
        raise ValueError(f"the result is NaN, and {rules.format} has none")
    return Value(nan, rules)


def round_sum(rules: Rules, *parts: tuple[Value, ...]) -> Value:
    """The sum of the parts, each a value or a product of two, rounded once."""
    METHODS.add("exact fractions")
    operands = [[as_read(value, rules) for value in part] for part in parts]
    if any(x != x for part in operands for x in part):
        return not_a_number(rules)
    total, signs, infinite = Fraction(0), set(), set()
    for part in operands:
        negative = sum(is_negative(x) for x in part) % 2 == 1
        signs.add(negative)
        if any(isinstance(x, float) and isinf(x) for x in part):
            if any(x == 0 for x in part):
                return not_a_number(rules)
            infinite.add(negative)
            continue
        product = Fraction(1)
        for x in part:
            product *= Fraction(x)
        total += product
    if infinite:
        return not_a_number(rules) if len(infinite) == 2 else beyond(rules, infinite.pop(), finite=False)
    if total == 0:
        return zero(rules, signs == {True} or (len(signs) == 2 and rules.mode == "RTN"))
    return rounded(rules, total)


def scalar_type(name: str) -> Any:
    """The numpy or ml_dtypes scalar type of this name, or None."""
    if not name:
        return None
    if hasattr(np, name):
        return getattr(np, name)
    try:
        import ml_dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, name, None)


def add(rules: Rules, left: Value, right: Value) -> Value:
    """left + right by the scalar type of the format where there is one, else exactly."""
    kind = scalar_type(rules.dtype)
    if kind is None:
        return round_sum(rules, (left,), (right,))
    METHODS.add(f"{'numpy' if hasattr(np, rules.dtype) else 'ml_dtypes'} {rules.dtype}")
    with np.errstate(all="ignore"):
        x = float(kind(float(left.number)) + kind(float(right.number)))
    if x != x or isinf(x):
        return Value(x, rules)
    return Value(Fraction(x), rules) if x else zero(rules, is_negative(x))


def read(text: str, rules: Rules) -> Value:
    """A number written as a hex float, exact for every format."""
    word = text.lstrip("-")
    sign = -1 if text.startswith("-") else 1
    if word in ("nan", "inf"):
        return Value(nan if word == "nan" else sign * inf, rules)
    digits, _, exponent = word.removeprefix("0x").partition("p")
    whole, _, fraction = digits.partition(".")
    size = int(whole + fraction, 16) * power(int(exponent) - 4 * len(fraction))
    return Value(sign * size, rules) if size else zero(rules, sign < 0)


def bits_of(value: Value) -> str:
    """The code of the value, ``nan`` for every NaN."""
    x, rules = value
    if x != x:
        return "nan"
    code, steps = rules.largest_code + 1, rules.precision - 1
    if x == 0:
        code = 0
    elif isinstance(x, Fraction):
        exponent = max(binade(abs(x)), 1 - rules.bias)
        significand = int(abs(x) / power(exponent - steps))
        code = significand + ((exponent + rules.bias - 1) << steps if significand >> steps else 0)
    width = 1 + rules.exponent_bits + steps
    if is_negative(x):
        code |= 1 << (width - 1)
    return f"{code:#0{2 + -(-width // 4)}x}"


def run(plan: dict[str, Any], schedule: str) -> Value:
    """The sum in this order."""
    leaves = [tuple(read(number, plan["formats"][name]) for name, number in term) for term in plan["terms"]]
    return sum_of(plan, leaves, schedule)


def sum_of(plan: dict[str, Any], leaves: list[tuple[Value, ...]], schedule: str) -> Value:
    """The sum of products of two values, or of single values, in this order.

    ``"0 1 + 2 +"`` adds terms 0 and 1, then term 2; ``"2 0 1 + fma"`` rounds term 2, a product, plus the sum of
    terms 0 and 1 only once.  The bias is the term after the last.
    """
    total, result, product = plan["accumulator"], plan["context"], plan["products"]

    def settled(part: tuple[Value, ...]) -> Value:
        value = round_sum(product or total, part) if len(part) == 2 else part[0]
        return value if value.rules.format == total.format else round_sum(total, (value,))

    stack: list[tuple[Value, ...]] = []
    for word in schedule.split():
        if word == "fma":
            value, fused = settled(stack.pop()), stack.pop()
            stack.append((round_sum(total, fused, (value,)),))
        elif word == "+":
            right, left = stack.pop(), stack.pop()
            if product is None and len(left) + len(right) > 2:
                stack.append((round_sum(total, left, right),))
            else:
                stack.append((add(total, settled(left), settled(right)),))
        else:
            leaf = leaves[int(word)]
            stack.append(leaf if len(leaf) == 2 else (settled(leaf),))
    value = settled(stack.pop())
    return value if total == result else round_sum(result, (value,))
