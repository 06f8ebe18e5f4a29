"""Activations given as float programs: a contract whose allowed results are what a program returns.

    swish:program(x/(1 + exp(-x)) | exp ulps=1 | fma any | in float32)

The program (`program_text`) runs in a stated context, by default the one that its result is asked in; its input is cast
to that context first, its result to the asked one.  Each real function in it has a contract of its own, correctly
rounded when nothing is said.  The functions are chosen anew at each use in the formula, and so is each fma under
``any``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format, context, from_ordinal, zero
from fpsmt.floats.vector import decode, embeds, from_ordinals, ordinals
from fpsmt.functions import FUNCTIONS, Contract, CorrectlyRounded, Function, allowed_arrays, function_named
from fpsmt.functions.enclosures import place
from fpsmt.functions.implementation_text import contract_named, split_outside
from fpsmt.functions.implementations import Interval, contract_from_json, register
from fpsmt.terms.arrays import evaluate_arrays
from fpsmt.terms.evaluate import evaluate, operate
from fpsmt.terms.program_errors import error_on, offsets
from fpsmt.terms.program_text import Compiled, Fma, compile_program, functions_of, input_term
from fpsmt.terms.programs_library import LIBRARY
from fpsmt.terms.terms import Term, cast, postorder

Array = NDArray[Any]
Rationals = tuple[Fraction, Fraction]
MOST_WAYS = 1 << 14  #: ways in which one input may run through a program
CELLS = 1 << 22  #: values held at a time in the evaluation on arrays


@dataclass(frozen=True)
class Program(Contract):
    """I(x) is between the least and the greatest result of a program at x.

    With correctly rounded functions and no free fma the program is a function, and its value the only result: exact.
    Else every way to run it is followed (at most `MOST_WAYS`; `Unsupported` beyond), so that both ends are results of
    the program; what lies between them is allowed, as for every contract.  NaN is allowed where every way gives NaN;
    `Unsupported` where only some do.

    `inner`: the contract of each function by name, those that are not correctly rounded.  The real function that the
    program implements has no part in this.

    >>> from fpsmt.floats import context, exactly, float32
    >>> swish = program("swish", exp="ulps=1")
    >>> low, high = swish.allowed(FUNCTIONS["swish"], context("float32"), exactly(float32, -1))
    >>> high.ordinal - low.ordinal
    1
    """

    body: str
    fma: Fma = "never"
    inner: tuple[tuple[str, Contract], ...] = ()
    context: Context | None = None

    def __post_init__(self) -> None:
        if self.fma not in get_args(Fma):
            raise UsageError(f"fma {self.fma!r}: write never, always or any")
        object.__setattr__(self, "body", " ".join(self.body.split()))
        kept = {name: c for name, c in sorted(self.inner) if not isinstance(c, CorrectlyRounded)}
        object.__setattr__(self, "inner", tuple(kept.items()))
        if unused := kept.keys() - functions_of(self.body):
            raise UsageError(f"the program {self.body!r} does not use {sorted(unused)[0]}")
        self.compiled(self.context or context("float32"), (self.context or context("float32")).format)

    def compiled(self, ctx: Context, fmt: Format) -> Compiled:
        """The program for inputs of `fmt` and results in `ctx`."""
        return _compiled(self, ctx, fmt)

    # -- one input --------------------------------------------------------------------------------------------

    def outcomes(self, ctx: Context, x: Float) -> frozenset[Float]:
        """Every result at x, whichever way the program runs."""
        compiled = self.compiled(ctx, x.format)
        if compiled.is_function:
            return frozenset({evaluate(compiled.term, {"x": x})})  # type: ignore[arg-type]
        return _outcomes(compiled, x, self.text)

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        found = self.outcomes(ctx, x)
        numbers = [y for y in found if not y.is_nan]
        if not numbers:
            (only,) = found
            return only, only
        if len(numbers) < len(found):
            raise Unsupported(f"{self.text} at {x}: some ways to run it give NaN, others {numbers[0]}")
        return min(numbers, key=place), max(numbers, key=place)

    # -- many inputs ------------------------------------------------------------------------------------------

    def arrays(self, function: Function, ctx: Context, x: Array, fmt: Format) -> tuple[Array, Array] | None:
        own = self.context or ctx
        if not all(map(embeds, (fmt, ctx.format, own.format))):
            return None
        compiled = self.compiled(ctx, fmt)
        if compiled.is_function:
            y = np.broadcast_to(evaluate_arrays(compiled.term, {"x": x}), x.shape)
            return np.array(y), np.array(y)
        low, high = np.empty(x.shape), np.empty(x.shape)
        step = max(1, CELLS // MOST_WAYS)
        for at in range(0, x.size, step):
            part = slice(at, at + step)
            low[part], high[part] = _ends(compiled, ctx, x[part], self.text)
        return low, high

    # -- an interval of inputs --------------------------------------------------------------------------------

    def offsets(
        self, function: Function, ctx: Context, low: Float, high: Float, slope: Fraction = Fraction(0)
    ) -> Rationals | None:
        """By an analysis of the errors of the program (`program_errors`), in its own context.

        >>> from fpsmt.floats import context, exactly, float32
        >>> ends = exactly(float32, 1), exactly(float32, 2)
        >>> low, high = program("x/(1 + x)").offsets(FUNCTIONS["identity"], context("float32"), *ends)
        >>> 0 < Fraction(1, 2) - low < Fraction(1, 10**3), 0 < high - Fraction(2, 3) < Fraction(1, 10**3)
        (True, True)
        """
        if self.context not in (None, ctx) or low.format != ctx.format or not (low.is_finite and high.is_finite):
            return None
        return _offsets(self, ctx, low, high, slope)

    analysed = True

    def error_on(self, function: Function, ctx: Context, low: Float, high: Float) -> Fraction | None:
        """The same, as far as the analysis knows the function: f of the registry that is analytic, or a rational.

        >>> from fpsmt.floats import context, exactly, float32
        >>> ends = exactly(float32, -4), exactly(float32, 4)
        >>> error = program("tanh_rational").error_on(FUNCTIONS["tanh"], context("float32"), *ends)
        >>> 0 < error < Fraction(1, 10**6)
        True
        """
        if self.context not in (None, ctx) or low.format != ctx.format or not (low.is_finite and high.is_finite):
            return None
        return _error_on(self, function.name, ctx, low, high)

    # -- text and JSON ----------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        names = [entry.name for entry in LIBRARY.values() if entry.body == self.body]
        words = [names[0] if names else self.body]
        words += [f"{name} {contract.text}" for name, contract in self.inner]
        words += [f"fma {self.fma}"] if self.fma != "never" else []
        words += [f"in {self.context}"] if self.context is not None else []
        return f"program({' | '.join(words)})"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "program",
            "body": self.body,
            "fma": self.fma,
            "inner": {name: contract.to_json() for name, contract in self.inner},
            "context": None if self.context is None else str(self.context),
        }


def program(
    body: str, fma: Fma = "never", within: Context | Format | str | None = None, **inner: Contract | str
) -> Program:
    """A program by its name in the library or by its text; contracts of inner functions by keyword.

    >>> program("1/(1 + exp(-x))", fma="any", exp="ulps=1").text
    'program(sigmoid | exp ulps=1 | fma any)'
    >>> program("1/(1 + sin(y))")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: cannot read 'y' in a program: y is not assigned before
    """
    text = LIBRARY[body].body if body in LIBRARY else body
    contracts = {name: contract_named(c) if isinstance(c, str) else c for name, c in inner.items()}
    if unknown := contracts.keys() - FUNCTIONS.keys():
        raise UsageError(f"{sorted(unknown)[0]!r} is not a function of fpsmt.functions")
    return Program(text, fma, tuple(sorted(contracts.items())), None if within is None else context(within))


def read_program(text: str) -> Program:
    """A program from what stands inside ``program(…)``: ``BODY | FUNCTION CONTRACT | fma M | in CONTEXT``."""
    body, *options = split_outside(text, "|")
    inner: dict[str, Contract] = {}
    known: dict[str, str] = {}
    for option in options:
        word, _, rest = option.partition(" ")
        if not rest or word in known or word in inner:
            raise UsageError(f"cannot read {option!r} in program({text}): write FUNCTION CONTRACT, fma M or in CONTEXT")
        if word in ("fma", "in"):
            known[word] = rest.strip()
        else:
            inner[word] = contract_named(rest.strip(), f"program({text})")
    within = context(known["in"]) if "in" in known else None
    return program(body, known.get("fma", "never"), within, **inner)  # type: ignore[arg-type]


def _from_json(data: Mapping[str, Any]) -> Program:
    inner = tuple((name, contract_from_json(c)) for name, c in data["inner"].items())
    if not isinstance(data["body"], str) or {name for name, _ in inner} - FUNCTIONS.keys():
        raise UsageError(f"not a program: {str(data)[:200]}")
    own = None if data["context"] is None else context(data["context"])
    return Program(data["body"], data["fma"], inner, own)


register("program", _from_json, read_program)


@lru_cache(maxsize=1 << 14)
def _offsets(contract: Program, ctx: Context, low: Float, high: Float, slope: Fraction) -> Rationals | None:
    try:
        return offsets(contract.compiled(ctx, low.format).term, ctx, low, high, slope)
    except Unsupported:
        return None


@lru_cache(maxsize=256)
def _error_on(contract: Program, function: str, ctx: Context, low: Float, high: Float) -> Fraction | None:
    try:
        return error_on(contract.compiled(ctx, low.format).term, function_named(function), ctx, low, high)
    except Unsupported:
        return None


@lru_cache(maxsize=512)
def _compiled(contract: Program, ctx: Context, fmt: Format) -> Compiled:
    own = contract.context or ctx
    found = compile_program(contract.body, own, contract.fma, dict(contract.inner), input_term(fmt, own))
    if own == ctx:
        return found
    return Compiled(cast(ctx, found.term), found.choices, found.inexact)


# -- every way to run a program -------------------------------------------------------------------------------


def _outcomes(compiled: Compiled, x: Float, text: str) -> frozenset[Float]:
    """Runs node by node; a node with several values that is used once keeps them as a set, else the run forks.

    A set is exact there: nothing else depends on which of its values was taken.
    """
    order = list(postorder(compiled.term))
    uses = Counter(arg for node in order for arg in node.args)  # e/e uses e twice
    inexact = set(compiled.inexact)
    runs: list[dict[Term, frozenset[Any]]] = [{}]
    for node in order:
        following = []
        for run in runs:
            values = _values(node, run, x, node in inexact, text)
            shared = uses[node] > 1 and len(values) > 1
            following += [{**run, node: part} for part in ([frozenset({v}) for v in values] if shared else [values])]
        runs = following
        if sum(len(run[node]) for run in runs) > MOST_WAYS:
            raise Unsupported(f"{text} at {x}: more than {MOST_WAYS} ways to run")
    return frozenset().union(*(run[compiled.term] for run in runs))


def _values(node: Term, run: Mapping[Term, frozenset[Any]], x: Float, inexact: bool, text: str) -> frozenset[Any]:
    if node.op == "var":
        return frozenset({x} if node.data == "x" else range(node.sort.size))  # type: ignore[union-attr]
    combinations: list[list[Any]] = [[]]
    for arg in node.args:
        combinations = [[*before, value] for before in combinations for value in run[arg]]
        if len(combinations) > MOST_WAYS:
            raise Unsupported(f"{text} at {x}: more than {MOST_WAYS} ways to run")
    if node.op != "apply":
        return frozenset(operate(node, values) for values in combinations)
    implementation, ctx, _ = node.data
    found: set[Float] = set()
    for (value,) in combinations:
        low, high = implementation.allowed(ctx, value)
        found |= set(floats_between(low, high, f"{text} at {x}"))
    return frozenset(found)


def floats_between(low: Float, high: Float, what: str) -> list[Float]:
    """All floats of [low, high], both zeros where both are inside."""
    if low == high:
        return [low]
    if place(high) - place(low) >= MOST_WAYS:
        raise Unsupported(f"{what}: a function has more than {MOST_WAYS} results")
    fmt = low.format
    return [from_ordinal(fmt, p) if p >= 0 else _minus(fmt, p) for p in range(place(low), place(high) + 1)]


def _minus(fmt: Format, position: int) -> Float:
    return zero(fmt, True) if position == -1 else from_ordinal(fmt, position + 1)


def _ends(compiled: Compiled, ctx: Context, x: Array, text: str) -> tuple[Array, Array]:
    """The least and the greatest result of each input: every choice is an axis of its own in front of the inputs."""
    axes = len(compiled.choices) + len(compiled.inexact)
    values: dict[str, Array] = {"x": x}
    ways = 1
    for axis, choice in enumerate(compiled.choices):
        size = choice.sort.size  # type: ignore[union-attr]
        ways *= size
        values[choice.data] = np.arange(size).reshape((1,) * axis + (size,) + (1,) * (axes - axis))
    outputs: dict[Term, Array] = {}
    for axis, node in enumerate(compiled.inexact, len(compiled.choices)):
        implementation, own, _ = node.data
        source = node.args[0]
        at = evaluate_arrays(source, values, outputs)
        low, high = allowed_arrays(implementation, own, at, source.format)
        outputs[node] = _spread(low, high, own.format, axis, axes, text)
        ways *= outputs[node].shape[axis] if outputs[node].ndim > axes else 1
        _check_ways(ways, text)
    _check_ways(ways, text)
    y = evaluate_arrays(compiled.term, values, outputs)
    y = np.broadcast_to(y, (*y.shape[:-1], x.size) if y.ndim else (x.size,)).reshape(-1, x.size)
    bad = np.isnan(y)
    if (bad.any(axis=0) & ~bad.all(axis=0)).any():
        where = x[int(np.argmax(bad.any(axis=0) & ~bad.all(axis=0)))]
        raise Unsupported(f"{text} at {where}: some ways to run it give NaN, others do not")
    positions = places(ctx.format, np.where(bad, 0.0, y))
    ends = [from_places(ctx.format, p) for p in (positions.min(axis=0), positions.max(axis=0))]
    return (*(np.where(bad[0], np.nan, end) for end in ends),)  # type: ignore[return-value]


def _check_ways(ways: int, text: str) -> None:
    if ways > MOST_WAYS:
        raise Unsupported(f"{text}: more than {MOST_WAYS} ways to run")


def _spread(low: Array, high: Array, fmt: Format, axis: int, axes: int, text: str) -> Array:
    """All floats of [low, high] along a new axis, the last ones repeated."""
    missing = np.isnan(low)
    first = places(fmt, np.where(missing, 0.0, low))
    count = places(fmt, np.where(missing, 0.0, high)) - first
    most = int(count.max(initial=0)) + 1
    _check_ways(most, text)
    shape = (1,) * (axes + 1 - first.ndim) + first.shape
    first, count, missing = (a.reshape(shape) for a in (first, count, missing))
    steps = np.arange(most).reshape((1,) * axis + (most,) + (1,) * (axes - axis))
    return np.where(missing, np.nan, from_places(fmt, first + np.minimum(steps, count)))


def places(fmt: Format, x: Array) -> Array:
    """`enclosures.place` on an array: places on the line of floats with −0 just below +0.  No NaN."""
    return ordinals(fmt, x) - np.signbit(x)


def from_places(fmt: Format, position: Array) -> Array:
    """The values at these places."""
    negative = position < 0
    size = from_ordinals(fmt, np.where(negative, -(position + 1), position))
    least = -0.0 if fmt.has_signed_zero else 0.0
    return np.where(negative, np.where(position == -1, least, -size), size)


def every_input(fmt: Format) -> Array:
    """Carriers of every code of a format of at most 16 bits."""
    return decode(fmt, np.arange(1 << fmt.bits, dtype=np.uint64))
