"""Second opinions and reproducers for sums: the same schedules run by numpy, or by exact fractions, without fpsmt.

`second_opinion` runs one schedule with the code of `numpy_sums` (every format involved is float16, float32 or
float64 with IEEE rules, and nothing is fused) or `exact_sums` (everything else).  `script` writes a program that
contains the same code, so that whoever does not trust this package needs only numpy to check its outcomes.
"""

from __future__ import annotations

import inspect
import os
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.sums import SumInvariant, SumOutcomes, replay_schedule
from fpsmt.errors import UsageError
from fpsmt.files import exact_sums, numpy_sums
from fpsmt.floats import FORMATS, Context, Float, Format, Mode, Overflow, Subnormals, nearest_context
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import Tree, steps, tree_text

_NUMPY = ("float16", "float32", "float64")


def schedule_words(tree: Tree) -> str:
    """The tree in postfix form, which needs no recursion to run.

    >>> schedule_words((("fma", 2, (0, 1)), 3))
    '2 0 1 + fma 3 +'
    """
    return " ".join(str(a) if op == "leaf" else "+" if op == "add" else "fma" for op, a, _ in steps(tree))


# -- plans: the sum as plain literals -----------------------------------------------------------------------


def _scalar_type(ctx: Context) -> str:
    """The numpy or ml_dtypes type whose addition rounds like this context, or an empty string.

    The types of ml_dtypes overflow to what their format has: infinity, else NaN, else the largest value.
    """
    fmt = ctx.format
    usual = Overflow.INFINITY if fmt.has_infinity else Overflow.NAN if fmt.has_nan else Overflow.SATURATE
    plain = ctx.mode is Mode.RNE and ctx.overflow is usual and ctx.subnormals is Subnormals.GRADUAL
    if not plain or not _is_dtype(fmt):
        return ""
    return fmt.name


def _is_dtype(fmt: Format) -> bool:
    if FORMATS.get(fmt.name) != fmt:
        return False
    if fmt.name in _NUMPY:
        return True
    try:
        import ml_dtypes
    except ImportError:
        return False
    return hasattr(ml_dtypes, fmt.name)


def _values(problem: Sum) -> list[tuple[Float, ...]]:
    """The leaves: one value each, or two factors; the bias last."""
    leaves: list[tuple[Float, ...]] = [term if isinstance(term, tuple) else (term,) for term in problem.terms]
    if problem.bias is not None:
        leaves.append((problem.bias,))
    return leaves


def _contexts(problem: Sum) -> tuple[Context, Context, Context | None]:
    """Those of the result, of the additions, and of the products (None: exact)."""
    ctx, execution = problem.context, problem.execution
    return ctx, execution.sum_context(ctx), execution.product_context(ctx)


def numpy_plan(problem: Sum) -> dict[str, Any] | None:
    """The sum for `numpy_sums.run`, or None when numpy's scalars alone cannot run all of its schedules."""
    ctx, total, product = _contexts(problem)
    leaves = _values(problem)
    own = {value.format for leaf in leaves for value in leaf} <= {ctx.format}
    types = [_scalar_type(c) for c in (ctx, total, product or total)]
    fuses = problem.execution.fuses(problem.is_dot) != "never"
    holds = product is not None and product.format.precision >= ctx.format.precision
    if fuses or not own or not set(types) <= set(_NUMPY) or (problem.is_dot and not holds):
        return None
    words = [leaf[0].hex if len(leaf) == 1 else [value.hex for value in leaf] for leaf in leaves]
    return {
        "format": types[0],
        "accumulator": types[1],
        "products": types[2],
        "terms": words[: problem.n],
        "bias": words[problem.n] if problem.bias is not None else None,
    }


def _rules(ctx: Context) -> exact_sums.Rules:
    fmt = ctx.format
    return exact_sums.Rules(
        fmt.name, fmt.exponent_bits, fmt.precision, fmt.bias, fmt.largest_code, fmt.has_infinity, fmt.nan,
        ctx.mode.value, ctx.overflow.value, ctx.subnormals.value, _scalar_type(ctx),
    )  # fmt: skip


def _format_rules(fmt: Format) -> exact_sums.Rules:
    """A format whose values are only read."""
    return _rules(nearest_context(fmt))


def exact_plan(problem: Sum) -> dict[str, Any]:
    """The sum for `exact_sums.run`."""
    ctx, total, product = _contexts(problem)
    leaves = _values(problem)
    formats = {value.format.name: value.format for leaf in leaves for value in leaf}
    return {
        "context": _rules(ctx),
        "accumulator": _rules(total),
        "products": None if product is None else _rules(product),
        "formats": {name: _format_rules(fmt) for name, fmt in formats.items()},
        "terms": [tuple((value.format.name, value.hex) for value in leaf) for leaf in leaves],
    }


# -- the second opinion -------------------------------------------------------------------------------------


def second_opinion(problem: Sum, tree: Tree) -> tuple[Float, str]:
    """The result of one schedule without fpsmt's own arithmetic, and how it was computed.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> second_opinion(Sum(context("float16"), ones), ((0, 1), 2))
    (<float16 2048.0 = 0x1p+11 = 0x6800>, 'numpy float16')
    """
    fmt = problem.context.format
    plan = numpy_plan(problem)
    if plan is not None:
        bits = numpy_sums.bits_of(numpy_sums.run(plan, schedule_words(tree)))
        how = "numpy " + ", ".join(dict.fromkeys((plan["accumulator"], plan["format"])))
    else:
        exact_sums.METHODS.clear()
        bits = exact_sums.bits_of(exact_sums.run(exact_plan(problem), schedule_words(tree)))
        how = ", ".join(sorted(exact_sums.METHODS)) or "exact fractions"
    if bits == "nan":
        if fmt.nan_code is None:
            raise UsageError(f"the result is NaN, and {fmt} has none")
        return Float(fmt, fmt.nan_code), how
    return Float(fmt, int(bits, 16)), how


# -- the script ---------------------------------------------------------------------------------------------


def script(problem: Sum, outcomes: Iterable[tuple[Float, Tree]], title: str) -> str:
    """A Python program that needs only numpy (and ml_dtypes where the format is one of its own, if installed).

    It runs every schedule again and asserts the exact bits of each outcome.
    """
    plan = numpy_plan(problem)
    module = numpy_sums if plan is not None else exact_sums
    rows = [
        (value.decimal, "nan" if value.is_nan else value.bits, schedule_words(tree), tree_text(tree))
        for value, tree in outcomes
    ]
    lines = [
        '"""Reproduces these outcomes of one sum, bit for bit, without fpsmt:',
        "",
        *textwrap.wrap(_plain(title), 112),
        "",
        "Run it with Python and numpy.  It stops with an AssertionError if an outcome is not reproduced.",
        '"""',
        "",
        _source(module),
        "",
        "#: the sum; numbers as hex floats" if plan is not None else "#: the sum; (format, number as a hex float)",
        f"PLAN = {_literal(plan if plan is not None else exact_plan(problem))}",
        "",
        "#: value, bits, schedule in postfix form",
        "OUTCOMES = [",
    ]
    for decimal, bits, words, text in rows:
        if len(text) <= 100:
            lines.append(f"    # {text}")
        lines.append(f"    ({decimal!r}, {bits!r}, {words!r}),")
    lines += [
        "]",
        "",
        'if __name__ == "__main__":',
        "    for value, bits, schedule in OUTCOMES:",
        "        found = bits_of(run(PLAN, schedule))",
        '        assert found == bits, f"{schedule}: {found} instead of {bits}"',
        '        print(f"{value}  {bits}  {schedule[:60]}")',
        '    print(f"all {len(OUTCOMES)} outcomes reproduced")',
        "",
    ]
    return "\n".join(lines)


def script_of(claim: Claim, schedules: Iterable[Json]) -> str | None:
    """The script that runs these schedules (JSON) of a claim about one sum, with the results that they have now;
    None when there is nothing to run."""
    if not isinstance(claim, SumInvariant | SumOutcomes):
        return None
    runs = [replay_schedule(claim.problem, schedule)[:2] for schedule in schedules]
    return script(claim.problem, runs, claim.text) if runs else None


def _plain(text: str) -> str:
    """Text that can stand inside a docstring."""
    return text.replace("\\", "/").replace('"""', "'''")


def _source(module: ModuleType) -> str:
    """The module's text without its docstring."""
    text = inspect.getsource(module)
    return text.split('"""', 2)[2].strip() + "\n"


def _literal(value: Any, indent: str = "") -> str:
    """A Python literal on several lines."""
    inner = indent + "    "
    if isinstance(value, dict) and value:
        body = "".join(f"{inner}{k!r}: {_literal(v, inner)},\n" for k, v in value.items())
        return f"{{\n{body}{indent}}}"
    if isinstance(value, list) and len(repr(value)) > 90:
        body = "".join(f"{inner}{v!r},\n" for v in value)
        return f"[\n{body}{indent}]"
    return repr(value)


def write_script(path: Path, text: str) -> None:
    """Writes the script; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=".py")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
