"""Throughput: arithmetic and correctly rounded functions on vectors, against scalars and against numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.measure import Missing, Row, Rows, benchmark, compare, seconds
from fpsmt import floats
from fpsmt.floats import Context, Float, context
from fpsmt.floats.vector import arithmetic, round_array, to_floats, values
from fpsmt.functions import Function, correctly_rounded, correctly_rounded_array, function_named

SIZE = 1 << 20
FEW = 1000


def _numbers(ctx: Context) -> Any:
    return round_array(ctx, np.random.default_rng(0).normal(size=SIZE))


@benchmark("vectors")
def vectors() -> Rows:
    """⊕ and ⊗ on a million values, per value."""
    operations: tuple[tuple[str, Callable[..., Float]], ...] = (("add", floats.add), ("mul", floats.mul))
    for name in ("float16", "bfloat16", "float32"):
        ctx = context(name)
        a, b = _numbers(ctx), _numbers(ctx)[::-1].copy()
        few = list(zip(to_floats(ctx.format, a[:FEW]), to_floats(ctx.format, b[:FEW]), strict=True))
        for word, scalar in operations:
            vector = getattr(arithmetic(ctx), word)
            vector(a[:8], b[:8])
            ours = seconds(vector, a, b, repeat=3) / SIZE
            peer = compare("exact scalars", _each, scalar, ctx, few)
            yield Row(f"{word} in {name}, one value of a million", ours, peer=peer)


def _each(operation: Callable[..., Float], ctx: Context, arguments: Sequence[tuple[Float, ...]]) -> float:
    """Seconds of one scalar operation."""
    return seconds(lambda: [operation(ctx, *each) for each in arguments]) / len(arguments)


@benchmark("functions")
def functions() -> Rows:
    """Correctly rounded: whole tables of 16-bit formats, and float32 vectors per value."""
    for name in ("float16", "bfloat16"):
        ctx = context(name)
        every = values(ctx.format)
        some = [(x,) for x in to_floats(ctx.format, every[:: len(every) // 300])]
        for word in ("tanh", "gelu"):
            function = function_named(word)
            correctly_rounded_array(function, ctx, every[:8])
            ours = seconds(correctly_rounded_array, function, ctx, every)
            peer = compare("scalar path, scaled up", _scalar_table, function, ctx, some, len(every))
            yield Row(f"table of {word} in {name}", ours, 1, peer)
    ctx = context("float32")
    x = _numbers(ctx)
    for word in ("exp", "tanh", "sigmoid"):
        function = function_named(word)
        correctly_rounded_array(function, ctx, x[:8])
        ours = seconds(correctly_rounded_array, function, ctx, x, repeat=3) / SIZE
        peer = compare("numpy, not correctly rounded", _numpy, word, x)
        yield Row(f"{word} in float32, one value of a million", ours, 1e-7, peer)


def _scalar_table(function: Function, ctx: Context, some: Sequence[tuple[Float, ...]], size: int) -> float:
    return _each(lambda c, x: correctly_rounded(function, c, x), ctx, some) * size


def _numpy(word: str, x: Any) -> float:
    if not hasattr(np, word):
        raise Missing("numpy has none")
    return seconds(getattr(np, word), x.astype(np.float32), repeat=3) / SIZE
