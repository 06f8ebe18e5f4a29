"""Float formulas without rounding, as formulas about integers.

A float term is followed as n·2^q with an integer term n and integer bounds on it.  When the bounds show that the
exact result of an operation is a value of its format (|n| ≤ 2^precision, q ≥ emin − precision + 1, |n|·2^q ≤ Ω),
rounding does nothing, in every mode, and the operation is one on integers.  Where they do not, the encoding
declines: it never approximates.  Multiplication needs a constant factor.

What is lost is the sign of zero, so that a comparison that can see it (`same`, sign tests) is only encoded
against a nonzero constant.  No infinity or NaN can arise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, Subnormals, pow2
from fpsmt.terms import BOOL, BitsSort, FloatSort, Term, ite, mul, postorder


@dataclass(frozen=True)
class _Fixed:
    """The number text·2^quantum, low ≤ text ≤ high."""

    text: str
    low: int
    high: int
    quantum: int = 0

    def at(self, quantum: int) -> _Fixed:
        """The same number in units of a smaller quantum."""
        scale = 1 << (self.quantum - quantum)
        if scale == 1:
            return self
        return _Fixed(f"(* {scale} {self.text})", self.low * scale, self.high * scale, quantum)


def integer_script(condition: Term) -> str:
    """An SMT-LIB script over integers that is satisfiable exactly when the condition is; or `Unsupported`."""
    encoder = _Encoder()
    for term in postorder(condition):
        encoder.visit(term)
    lines = ["(set-logic ALL)", *encoder.lines, f"(assert {encoder.truth[condition]})", "(check-sat)"]
    return "\n".join(lines) + "\n"


class _Encoder:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.number: dict[Term, _Fixed] = {}
        self.truth: dict[Term, str] = {}
        self.count = 0

    def visit(self, term: Term) -> None:
        if term.sort == BOOL:
            if term not in self.truth:
                self.truth[term] = self._name("Bool", self._bool(term))
        elif isinstance(term.sort, FloatSort | BitsSort):
            if term not in self.number:
                value = self._float(term) if isinstance(term.sort, FloatSort) else self._bits(term)
                self.number[term] = _Fixed(self._name("Int", value.text), value.low, value.high, value.quantum)
        else:
            raise Unsupported(f"integers have no encoding for sort {term.sort}")

    def _name(self, sort: str, text: str) -> str:
        if " " not in text:
            return text
        self.count += 1
        self.lines.append(f"(define-fun i{self.count} () {sort} {text})")
        return f"i{self.count}"

    # -- bits ---------------------------------------------------------------------------------------------

    def _bits(self, term: Term) -> _Fixed:
        assert isinstance(term.sort, BitsSort)
        top = (1 << term.sort.width) - 1
        if term.op == "var":
            self.count += 1
            name = f"v{self.count}"
            self.lines += [f"(declare-const {name} Int)", f"(assert (<= 0 {name} {top}))"]
            return _Fixed(name, 0, top)
        if term.op == "const":
            return _Fixed(str(term.data), term.data, term.data)
        args = [self.number[a] for a in term.args if a in self.number]
        if term.op == "concat":
            total = _Fixed("0", 0, 0)
            for part, arg in zip(args, term.args, strict=True):
                assert isinstance(arg.sort, BitsSort)
                shifted = _Fixed(total.text, total.low, total.high, arg.sort.width).at(0)
                total = _sum(shifted, part)
            return total
        if term.op in ("bits_add", "bits_sub"):
            total = _sum(args[0], args[1] if term.op == "bits_add" else _negated(args[1]))
            if not (total.low >= 0 and total.high <= top):
                raise Unsupported(f"{term!r} may wrap around")
            return total
        raise Unsupported(f"integers have no encoding for {term.op}")

    # -- floats -------------------------------------------------------------------------------------------

    def _float(self, term: Term) -> _Fixed:
        if term.op == "const":
            return _constant(term.data)
        if term.op == "from_bits":
            return self._from_code(term.format, self.number[term.args[0]])
        if term.op == "neg":
            return _negated(self.number[term.args[0]])
        if term.op == "ite":
            return self._ite(term)
        if term.op in ("add", "cast"):
            terms = [self.number[a] for a in term.args]
            total, *others = _aligned(*terms)
            for other in others:
                total = _sum(total, other)
            return _exact(term, total)
        if term.op == "mul":
            return self._product(term)
        raise Unsupported(f"integers have no encoding for {term.op}")

    def _product(self, term: Term) -> _Fixed:
        a, b = term.args
        for one, other in ((a, b), (b, a)):
            value = self.number[one]
            if value.low == value.high:
                factor, n = value.low, self.number[other]
                ends = sorted((n.low * factor, n.high * factor))
                text = n.text if factor == 1 else f"(* {_literal(factor)} {n.text})"
                return _exact(term, _Fixed(text, ends[0], ends[1], n.quantum + value.quantum))
        for one, other in ((a, b), (b, a)):
            if one.op == "ite":  # a choice of factors becomes a choice of products
                condition, yes, no = one.args
                spread = ite(condition, mul(term.data, yes, other), mul(term.data, no, other))
                for part in postorder(spread):
                    self.visit(part)
                return self.number[spread]
        raise Unsupported(f"{term!r} multiplies two variables")

    def _ite(self, term: Term) -> _Fixed:
        condition = self.truth[term.args[0]]
        yes, no = _aligned(*(self.number[a] for a in term.args[1:]))
        low, high = min(yes.low, no.low), max(yes.high, no.high)
        if _is_relu(term):
            low, high = 0, max(yes.high, 0)
        return _Fixed(f"(ite {condition} {yes.text} {no.text})", low, high, yes.quantum)

    def _from_code(self, fmt: Format, code: _Fixed) -> _Fixed:
        """Codes within one binade, or within the subnormals and the first binade, are linear in the value."""
        p = fmt.fraction_bits
        if code.low >= 0 and code.high <= min(2 << p, fmt.largest_code):
            return _Fixed(code.text, code.low, code.high, fmt.emin - p)
        field = code.low >> p
        if field >= 1 and code.high <= min((field + 1) << p, fmt.largest_code):
            offset = (1 << p) - (field << p)
            text = f"(+ {code.text} {_literal(offset)})"
            return _Fixed(text, code.low + offset, code.high + offset, field - fmt.bias - p)
        raise Unsupported(f"codes from {code.low} to {code.high} of {fmt} are not within one binade")

    # -- Booleans -----------------------------------------------------------------------------------------

    def _bool(self, term: Term) -> str:
        plain = {"and": "and", "or": "or", "not": "not"}
        if term.op == "const":
            return "true" if term.data else "false"
        if term.op == "var":
            self.count += 1
            self.lines.append(f"(declare-const v{self.count} Bool)")
            return f"v{self.count}"
        if term.op in plain:
            return f"({plain[term.op]} {' '.join(self.truth[a] for a in term.args)})"
        if term.op in ("is_nan", "is_infinite"):
            return "false"
        if term.op == "is_finite":
            return "true"
        compare: dict[str, str] = {"lt": "<", "le": "<=", "eq": "=", "same": "=", "bits_less": "<"}
        if term.op not in compare or any(a not in self.number for a in term.args):
            raise Unsupported(f"integers have no encoding for {term.op} of sort {term.args[0].sort}")
        a, b = (self.number[arg] for arg in term.args)
        if term.op == "same" and isinstance(term.args[0].sort, FloatSort) and not (_nonzero(a) or _nonzero(b)):
            raise Unsupported("integers do not tell the zeros apart")
        a, b = _aligned(a, b)
        return f"({compare[term.op]} {a.text} {b.text})"


def _aligned(*numbers: _Fixed) -> list[_Fixed]:
    """The numbers in units of their smallest quantum; a constant zero has no quantum of its own."""
    quantum = min((n.quantum for n in numbers if n.low or n.high), default=0)
    return [n.at(quantum) if n.low or n.high else _Fixed("0", 0, 0, quantum) for n in numbers]


def _literal(n: int) -> str:
    return str(n) if n >= 0 else f"(- {-n})"


def _nonzero(x: _Fixed) -> bool:
    return x.low == x.high != 0


def _sum(a: _Fixed, b: _Fixed) -> _Fixed:
    return _Fixed(f"(+ {a.text} {b.text})", a.low + b.low, a.high + b.high, a.quantum)


def _negated(a: _Fixed) -> _Fixed:
    return _Fixed(f"(- {a.text})", -a.high, -a.low, a.quantum)


def _constant(value: Float) -> _Fixed:
    if not value.is_finite:
        raise Unsupported(f"{value} is not a number")
    m, e = value.dyadic
    while m and m % 2 == 0:
        m, e = m // 2, e + 1
    return _Fixed(_literal(m), m, m, e)


def _exact(term: Term, result: _Fixed) -> _Fixed:
    """The result, when it is a value of the operation's format for all its integers."""
    ctx: Context = term.data
    fmt = ctx.format
    if ctx.subnormals is not Subnormals.GRADUAL:
        raise Unsupported("integers are for gradual underflow")
    bound = max(abs(result.low), abs(result.high))
    fits = bound <= 1 << fmt.precision and result.quantum >= fmt.emin - fmt.fraction_bits
    if bound and not (fits and Fraction(bound) * pow2(result.quantum) <= fmt.largest):
        raise Unsupported(f"{term.op} may round: values up to {bound}·2^{result.quantum} in {fmt}")
    return result


def _is_relu(term: Term) -> bool:
    """x where 0 < x, else zero (or NaN, which does not arise)."""
    condition, x, other = term.args
    if not (condition.op == "lt" and condition.args[1] is x and _is_zero(condition.args[0])):
        return False
    return _is_zero(other) or (other.op == "ite" and other.args[0].op == "is_nan" and _is_zero(other.args[2]))


def _is_zero(term: Term) -> bool:
    return term.op == "const" and isinstance(term.data, Float) and term.data.is_zero
