"""SMT-LIB expressions over Booleans, bit vectors and floats: hash-consed, constants folded, printed as text.

A sort is 0 for Bool, n > 0 for ``(_ BitVec n)``, and a pair for ``(_ FloatingPoint eb sb)``.  Booleans and bit
vectors are unsigned Python integers when constant.  The constructors fold constants and neutral elements,
so a formula over constants becomes a constant: this is how the circuit is compared with exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakValueDictionary

Sort = int | tuple[int, int]
BOOL = 0


class Node:
    """One expression.  `op` is the SMT-LIB head; constants have op ``const``, variables ``var``."""

    __slots__ = ("__weakref__", "args", "op", "sort", "value")
    op: str
    sort: Sort
    args: tuple[Node, ...]
    value: int | str | None

    _interned: WeakValueDictionary[tuple[object, ...], Node] = WeakValueDictionary()

    def __new__(cls, op: str, sort: Sort, args: tuple[Node, ...] = (), value: int | str | None = None) -> Node:
        key = (op, sort, args, value)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.op, found.sort, found.args, found.value = op, sort, args, value
            cls._interned[key] = found
        return found

    @property
    def width(self) -> int:
        assert isinstance(self.sort, int)
        return self.sort

    @property
    def constant(self) -> int | None:
        """The value of a Bool or bit-vector constant, else None."""
        return self.value if self.op == "const" and isinstance(self.value, int) else None

    def __repr__(self) -> str:
        return f"<{sort_text(self.sort)} {self.op} {self.value if self.value is not None else len(self.args)}>"


def variable(name: str, sort: Sort) -> Node:
    return Node("var", sort, (), name)


def number(width: int, value: int) -> Node:
    """A bit-vector constant, modulo 2^width."""
    return Node("const", width, (), value & ((1 << width) - 1))


def truth(value: bool) -> Node:
    return Node("const", BOOL, (), int(value))


TRUE, FALSE = truth(True), truth(False)

# -- meaning of the bit-vector operators on integers ------------------------------------------------------


def _signed(width: int, x: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


#: op → meaning(width of the first argument, values); results are reduced modulo 2^width of the result sort.
MEANING: dict[str, Callable[..., int]] = {
    "bvadd": lambda w, a, b: a + b,
    "bvsub": lambda w, a, b: a - b,
    "bvmul": lambda w, a, b: a * b,
    "bvneg": lambda w, a: -a,
    "bvnot": lambda w, a: ~a,
    "bvand": lambda w, a, b: a & b,
    "bvor": lambda w, a, b: a | b,
    "bvxor": lambda w, a, b: a ^ b,
    "bvshl": lambda w, a, b: a << b if b < w else 0,
    "bvlshr": lambda w, a, b: a >> b if b < w else 0,
    "bvudiv": lambda w, a, b: a // b if b else -1,
    "bvurem": lambda w, a, b: a % b if b else a,
    "bvult": lambda w, a, b: int(a < b),
    "bvule": lambda w, a, b: int(a <= b),
    "bvslt": lambda w, a, b: int(_signed(w, a) < _signed(w, b)),
    "bvsle": lambda w, a, b: int(_signed(w, a) <= _signed(w, b)),
}


def _binary(op: str, a: Node, b: Node, sort: Sort) -> Node:
    assert a.sort == b.sort, (op, a.sort, b.sort)
    x, y = a.constant, b.constant
    if x is not None and y is not None:
        result = MEANING[op](a.width, x, y)
        return truth(bool(result)) if sort == BOOL else number(a.width, result)
    return Node(op, sort, (a, b))


def add(a: Node, b: Node) -> Node:
    if b.constant == 0:
        return a
    if a.constant == 0:
        return b
    return _binary("bvadd", a, b, a.sort)


def sub(a: Node, b: Node) -> Node:
    return a if b.constant == 0 else _binary("bvsub", a, b, a.sort)


def mul(a: Node, b: Node) -> Node:
    if a.constant == 0 or b.constant == 0:
        return number(a.width, 0)
    if a.constant == 1:
        return b
    return a if b.constant == 1 else _binary("bvmul", a, b, a.sort)


def bits_and(a: Node, b: Node) -> Node:
    return _binary("bvand", a, b, a.sort)


def bits_or(a: Node, b: Node) -> Node:
    return _binary("bvor", a, b, a.sort)


def bits_xor(a: Node, b: Node) -> Node:
    return _binary("bvxor", a, b, a.sort)


def negate(a: Node) -> Node:
    return Node("bvneg", a.sort, (a,)) if a.constant is None else number(a.width, -a.constant)


def shift_left(a: Node, b: Node) -> Node:
    return a if b.constant == 0 else _binary("bvshl", a, b, a.sort)


def shift_right(a: Node, b: Node) -> Node:
    return a if b.constant == 0 else _binary("bvlshr", a, b, a.sort)


def quotient(a: Node, b: Node) -> Node:
    return _binary("bvudiv", a, b, a.sort)


def remainder(a: Node, b: Node) -> Node:
    return _binary("bvurem", a, b, a.sort)


def less(a: Node, b: Node) -> Node:
    """Unsigned a < b."""
    if a is b or b.constant == 0:
        return FALSE
    return _binary("bvult", a, b, BOOL)


def less_equal(a: Node, b: Node) -> Node:
    """Unsigned a ≤ b."""
    if a is b or a.constant == 0 or b.constant == (1 << b.width) - 1:
        return TRUE
    return _binary("bvule", a, b, BOOL)


def signed_less(a: Node, b: Node) -> Node:
    return FALSE if a is b else _binary("bvslt", a, b, BOOL)


def signed_less_equal(a: Node, b: Node) -> Node:
    return TRUE if a is b else _binary("bvsle", a, b, BOOL)


def concat(*parts: Node) -> Node:
    """The parts side by side, the first on top; parts of width 0 must be left out."""
    result = parts[0]
    for part in parts[1:]:
        x, y = result.constant, part.constant
        width = result.width + part.width
        if x is not None and y is not None:
            result = number(width, (x << part.width) | y)
        else:
            result = Node("concat", width, (result, part))
    return result


def extract(a: Node, high: int, low: int) -> Node:
    width = high - low + 1
    assert 0 <= low <= high < a.width, (high, low, a.width)
    if width == a.width:
        return a
    if a.constant is not None:
        return number(width, a.constant >> low)
    if a.op == "concat":
        top, bottom = a.args
        if high < bottom.width:
            return extract(bottom, high, low)
        if low >= bottom.width:
            return extract(top, high - bottom.width, low - bottom.width)
    if a.op.startswith("(_ extract "):
        inner = int(a.op[:-1].split()[3])
        return extract(a.args[0], high + inner, low + inner)
    return Node(f"(_ extract {high} {low})", width, (a,))


def widen(a: Node, width: int) -> Node:
    """Zero-extended to this width."""
    return a if width == a.width else concat(number(width - a.width, 0), a)


def pad(a: Node, width: int) -> Node:
    """Zeros appended below, up to this width."""
    return a if width == a.width else concat(a, number(width - a.width, 0))


# -- Booleans -------------------------------------------------------------------------------------------


def no(a: Node) -> Node:
    if a.constant is not None:
        return truth(not a.constant)
    return a.args[0] if a.op == "not" else Node("not", BOOL, (a,))


def _connect(op: str, neutral: Node, absorbing: Node, parts: Iterable[Node]) -> Node:
    unique = tuple(part for part in dict.fromkeys(parts) if part is not neutral)
    if absorbing in unique:
        return absorbing
    if not unique:
        return neutral
    return unique[0] if len(unique) == 1 else Node(op, BOOL, unique)


def both(*parts: Node) -> Node:
    """Conjunction."""
    return _connect("and", TRUE, FALSE, parts)


def either(*parts: Node) -> Node:
    """Disjunction."""
    return _connect("or", FALSE, TRUE, parts)


def implies(a: Node, b: Node) -> Node:
    return either(no(a), b)


def equal(a: Node, b: Node) -> Node:
    """SMT-LIB ``=``."""
    assert a.sort == b.sort, (a.sort, b.sort)
    if a is b:
        return TRUE
    x, y = a.constant, b.constant
    if x is not None and y is not None:
        return truth(x == y)
    if a.sort == BOOL and (x is not None or y is not None):
        known, other = (x, b) if x is not None else (y, a)
        return other if known else no(other)
    return Node("=", BOOL, (a, b))


def differ(a: Node, b: Node) -> Node:
    return no(equal(a, b))


def ite(c: Node, a: Node, b: Node) -> Node:
    assert a.sort == b.sort, (a.sort, b.sort)
    if c.constant is not None:
        return a if c.constant else b
    if a is b:
        return a
    if a.sort == BOOL:
        if a.constant is not None:
            return either(c, b) if a.constant else both(no(c), b)
        if b.constant is not None:
            return implies(c, a) if b.constant else both(c, a)
    if c.op == "not":
        return Node("ite", a.sort, (c.args[0], b, a))
    return Node("ite", a.sort, (c, a, b))


def bit(a: Node, index: int) -> Node:
    """Bit `index` as a Boolean."""
    return equal(extract(a, index, index), number(1, 1))


def as_bit(a: Node) -> Node:
    """A Boolean as one bit."""
    return ite(a, number(1, 1), number(1, 0))


def nonzero(a: Node) -> Node:
    return differ(a, number(a.width, 0))


# -- floats ---------------------------------------------------------------------------------------------


def float_constant(eb: int, sb: int, code: int) -> Node:
    """The float with this IEEE code, written ``(fp #b… #b… #b…)``."""
    return Node("const", (eb, sb), (), code)


def float_operation(op: str, sort: Sort, *args: Node) -> Node:
    """Any float operator, e.g. ``fp.add RNE``; not folded."""
    return Node(op, sort, args)


# -- text -----------------------------------------------------------------------------------------------


def sort_text(sort: Sort) -> str:
    if isinstance(sort, tuple):
        return f"(_ FloatingPoint {sort[0]} {sort[1]})"
    return "Bool" if sort == BOOL else f"(_ BitVec {sort})"


def _constant_text(node: Node) -> str:
    value = node.value
    assert isinstance(value, int)
    if isinstance(node.sort, tuple):
        eb, sb = node.sort
        digits = f"{value:0{eb + sb}b}"
        return f"(fp #b{digits[0]} #b{digits[1 : 1 + eb]} #b{digits[1 + eb :]})"
    if node.sort == BOOL:
        return "true" if value else "false"
    return f"#b{value:0{node.sort}b}"


def postorder(roots: Sequence[Node]) -> Iterator[Node]:
    """Every node once, arguments first."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args) if arg not in seen)


def script(assertions: Sequence[Node], shown: Sequence[Node] = (), comments: Sequence[str] = ()) -> str:
    """A complete SMT-LIB 2.6 script: declarations, one definition per shared node, assertions, `check-sat`.

    `shown` are variables that are declared even if no assertion mentions them.
    """
    uses: dict[Node, int] = {}
    order = list(postorder([*shown, *assertions]))
    for node in order:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    sorts = {node.sort for node in order}
    floats = any(isinstance(sort, tuple) for sort in sorts)
    vectors = any(isinstance(sort, int) and sort > 0 for sort in sorts)
    logic = ("QF_BVFP" if vectors else "QF_FP") if floats else "QF_BV"
    lines = [*(f"; {comment}" for comment in comments)]
    lines += [f"(set-logic {logic})"]
    words: dict[Node, str] = {}
    count = 0
    for node in order:
        if node.op == "const":
            words[node] = _constant_text(node)
        elif node.op == "var":
            assert isinstance(node.value, str)
            words[node] = node.value
            lines.append(f"(declare-const {node.value} {sort_text(node.sort)})")
        else:
            word = f"({node.op} {' '.join(words[arg] for arg in node.args)})" if node.args else node.op
            if uses.get(node, 0) > 1 or len(word) > 400:
                count += 1
                words[node] = f"n!{count}"
                lines.append(f"(define-fun n!{count} () {sort_text(node.sort)} {word})")
            else:
                words[node] = word
    lines += [f"(assert {words[assertion]})" for assertion in assertions]
    lines.append("(check-sat)")
    return "\n".join(lines) + "\n"
