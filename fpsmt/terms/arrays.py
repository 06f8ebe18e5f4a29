"""The meaning of terms on whole arrays: the vectorised twin of `fpsmt.terms.evaluate`.

Floats are carriers (`fpsmt.floats.vector`), bits uint64 (Python integers beyond 64 bits), choices int64,
Booleans bool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format
from fpsmt.floats import vector as v
from fpsmt.functions import CorrectlyRounded, Implementation, correctly_rounded_array
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort, Sort, Term, postorder

Array = NDArray[Any]


def evaluate_arrays(
    root: Term, values: Mapping[str, ArrayLike], outputs: Mapping[Term, ArrayLike] | None = None
) -> Array:
    """The term for arrays of variable values, elementwise with numpy's broadcasting.

    Equal to `evaluate` bit for bit: NaN, infinities, the signs of zeros, subnormals.  Carriers must be values of
    their variable's format; that is checked.  A term without variables gives a 0-dimensional array.
    `outputs` gives, for an ``apply`` term, what the implementation returns (whether it is allowed is not checked);
    an inexact implementation whose output is not given raises `Unsupported`, because it has more than one.
    Raises `UsageError` as `evaluate` does, if any element would.

    >>> from fpsmt.floats import context, float16
    >>> from fpsmt.terms import add, var
    >>> x = var("x", float16)
    >>> evaluate_arrays(add(context("float16"), x, x), {"x": [1.0, -0.0, 60000.0]}).tolist()
    [2.0, -0.0, inf]
    """
    given = outputs or {}
    found: dict[Term, Array] = {}
    for term in postorder(root):
        args = [found[arg] for arg in term.args]
        if term.op == "var":
            found[term] = _variable(term, values)
        elif term.op == "const":
            found[term] = _constant(term.sort, term.data)
        elif term in given:
            found[term] = _of_format(term.format, given[term], term.op)
        elif term.op == "apply":
            found[term] = _apply(term, args[0])
        elif term.op in _ROUNDED:
            arithmetic = v.arithmetic(term.data, [arg.format for arg in term.args])
            found[term] = np.asarray(getattr(arithmetic, term.op)(*args))
        elif term.op in _PLAIN:
            found[term] = np.asarray(_PLAIN[term.op](term, *args))
        else:
            raise Unsupported(f"the evaluation on arrays does not know the operator {term.op!r}")
    return found[root]


_ROUNDED = frozenset({"add", "mul", "fma", "add_products", "div", "sqrt", "cast"})


def _of_format(fmt: Format, x: ArrayLike, name: str) -> Array:
    array = np.asarray(x)
    try:
        return np.asarray(v.decode(fmt, v.encode(fmt, array)))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _variable(term: Term, values: Mapping[str, ArrayLike]) -> Array:
    name, sort = term.data, term.sort
    if name not in values:
        raise UsageError(f"no values are given for the variable {name!r}")
    if isinstance(sort, FloatSort):
        return _of_format(sort.format, values[name], f"variable {name!r}")
    array = np.asarray(values[name])
    if sort == BOOL:
        if array.dtype != bool:
            raise UsageError(f"variable {name!r}: Booleans are an array of bool, not {array.dtype}")
        return array
    size = sort.size if isinstance(sort, ChoiceSort) else 1 << _width(sort)
    if array.dtype.kind not in "iuO" or ((array < 0) | (array > size - 1)).any():
        raise UsageError(f"variable {name!r}: the values of sort {sort} are the integers 0 … {size - 1}")
    return array.astype(np.int64) if isinstance(sort, ChoiceSort) else _as_bits(array, _width(sort))


def _width(sort: Sort) -> int:
    assert isinstance(sort, BitsSort)
    return sort.width


def _as_bits(array: Array, width: int) -> Array:
    return array.astype(np.uint64 if width <= 64 else object)


def _constant(sort: Sort, data: Any) -> Array:
    if isinstance(data, Float):
        return np.asarray(v.decode(data.format, _as_bits(np.asarray(data.code), data.format.bits)))
    if isinstance(sort, BitsSort):
        return _as_bits(np.asarray(data), sort.width)
    return np.asarray(data)


def _apply(term: Term, x: Array) -> Array:
    implementation: Implementation
    ctx: Context
    implementation, ctx, _ = term.data
    if not isinstance(implementation.contract, CorrectlyRounded):
        raise Unsupported(f"{implementation.text} may return several values: give its outputs")
    return np.asarray(correctly_rounded_array(implementation.function, ctx, x, term.args[0].format))


# -- floats ---------------------------------------------------------------------------------------------


def _exact(term: Term) -> bool:
    """The first argument is a float that carriers hold as float64."""
    return v.embeds(term.args[0].format)


def _each(function: Callable[..., Any], dtype: Any, *args: Array) -> Array:
    arrays = np.broadcast_arrays(*args)
    out = np.empty(arrays[0].shape, dtype=dtype)
    for index in np.ndindex(out.shape):
        out[index] = function(*(a[index] for a in arrays))
    return out


def _neg(term: Term, a: Array) -> Array:
    if not _exact(term):
        return _each(lambda x: -x, object, a)
    return -a if term.format.has_signed_zero else np.where(a == 0, 0.0, -a)


def _abs(term: Term, a: Array) -> Array:
    return np.abs(a) if _exact(term) else _each(abs, object, a)


def _test(name: str, fast: Callable[[Array], Array]) -> Callable[..., Array]:
    def test(term: Term, a: Array) -> Array:
        return fast(a) if _exact(term) else _each(lambda x: getattr(x, name), bool, a)

    return test


def _compare(name: str, fast: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def compare(term: Term, a: Array, b: Array) -> Array:
        from fpsmt import floats

        return fast(a, b) if _exact(term) else _each(getattr(floats, name), bool, a, b)

    return compare


def _same(term: Term, a: Array, b: Array) -> Array:
    if not isinstance(term.args[0].sort, FloatSort) or not _exact(term):
        return np.asarray(a == b, dtype=bool)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


# -- choices and bits -----------------------------------------------------------------------------------


def _choose(term: Term, choice: Array, *options: Array) -> Array:
    """Options that are one value each are looked up together."""
    filler = np.zeros((), options[0].dtype)
    out: Array = np.stack([filler if option.ndim else option for option in options])[choice]
    for k, option in enumerate(options):
        if option.ndim:
            out = np.where(choice == k, option, out)
    return out


def _wrapped(term: Term, a: Array) -> Array:
    """Modulo 2^width; uint64 arithmetic has already wrapped at 64 bits."""
    width = _width(term.sort)
    if width > 64:
        return np.asarray(a & ((1 << width) - 1), dtype=object)
    return np.asarray(a, dtype=np.uint64) & np.uint64((1 << width) - 1)


def _shift_left(term: Term, a: Array, b: Array) -> Array:
    width = _width(term.sort)
    inside = np.asarray(b < width, dtype=bool)
    amount = _as_bits(np.where(inside, b, 0 * b), width)
    return _wrapped(term, np.where(inside, a << amount, 0 * a))


def _concat(term: Term, *parts: Array) -> Array:
    width = _width(term.sort)
    out = _as_bits(np.zeros((), dtype=object), width)
    for arg, part in zip(term.args, parts):
        size = _width(arg.sort)
        shifted = out << _as_bits(np.asarray(size), width) if size < width else 0 * out
        out = shifted | _as_bits(part, width)
    return out


def _extract(term: Term, a: Array) -> Array:
    _, low = term.data
    width = _width(term.args[0].sort)
    return _wrapped(term, _as_bits(a >> _as_bits(np.asarray(low), width), width))


def _all(term: Term, *parts: Array) -> Array:
    out = parts[0]
    for part in parts[1:]:
        out = out & part
    return out


def _any(term: Term, *parts: Array) -> Array:
    out = parts[0]
    for part in parts[1:]:
        out = out | part
    return out


_PLAIN: dict[str, Callable[..., Any]] = {
    "neg": _neg,
    "abs": _abs,
    "from_bits": lambda term, a: v.decode(term.format, a),
    "ite": lambda term, c, a, b: np.where(c, a, b),
    "choose": _choose,
    "choice_is": lambda term, c: c == term.data,
    "same": _same,
    "eq": _compare("equal", lambda a, b: a == b),
    "lt": _compare("less", lambda a, b: a < b),
    "le": _compare("less_equal", lambda a, b: a <= b),
    "is_nan": _test("is_nan", np.isnan),
    "is_infinite": _test("is_infinite", np.isinf),
    "is_finite": _test("is_finite", np.isfinite),
    "is_zero": _test("is_zero", lambda a: a == 0),
    "is_negative": _test("negative", lambda a: np.signbit(a) & ~np.isnan(a)),
    "and": _all,
    "or": _any,
    "not": lambda term, a: ~a,
    "bits_add": lambda term, a, b: _wrapped(term, a + b),
    "bits_sub": lambda term, a, b: _wrapped(term, a - b),
    "bits_less": lambda term, a, b: np.asarray(a < b, dtype=bool),
    "bits_and": lambda term, a, b: a & b,
    "shift_left": _shift_left,
    "concat": _concat,
    "extract": _extract,
}
