"""Affine maps of tiny formats by the reference arithmetic alone: every (w, b) at every input."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fpsmt.claims import Reading, Setting
from fpsmt.floats import Context, Float, add, all_values, mul
from fpsmt.functions import Function, correctly_rounded


@lru_cache
def _operation(name: str, ctx: Context) -> np.ndarray:
    """Codes of the results for all pairs of codes."""
    operation = {"mul": mul, "add": add}[name]
    size = 1 << ctx.format.bits
    every = [Float(ctx.format, code) for code in range(size)]
    return np.array([[operation(ctx, a, b).code for b in every] for a in every])


@lru_cache
def _labels(function: Function, ctx: Context) -> np.ndarray:
    """For each code a number for its output: outputs that are equal as numbers have one, NaN has −1."""
    values = [correctly_rounded(function, ctx, Float(ctx.format, code)) for code in range(1 << ctx.format.bits)]
    return np.array([-(10**6) if y.is_nan else y.ordinal for y in values])


def inputs(setting: Setting) -> list[Float]:
    """The domain, one zero."""
    fmt = setting.context.format
    found = [x for x in all_values(fmt, finite=True) if setting.low.fraction <= x.fraction <= setting.high.fraction]
    return [x for x in found if not (x.is_zero and x.negative)]


def outcomes(setting: Setting, xs: list[Float]) -> tuple[np.ndarray, np.ndarray]:
    """(labels of the outputs, whether w⊗x and w⊗x⊕b are finite), of shape (maps, inputs)."""
    ctx = setting.context
    finite = np.array([Float(ctx.format, code).is_finite for code in range(1 << ctx.format.bits)])
    parameters = np.array([x.code for x in all_values(ctx.format, finite=True)])
    codes = np.array([x.code for x in xs])
    product = _operation("mul", ctx)[parameters[:, None], codes[None, :]]
    moved = _operation("add", ctx)[product[:, None, :], parameters[None, :, None]]
    good = finite[moved] & finite[product][:, None, :]
    labels = _labels(setting.function, ctx)[moved]
    return labels.reshape(-1, len(xs)), good.reshape(-1, len(xs))


def told_apart(setting: Setting) -> np.ndarray:
    """Which pairs of inputs some admissible map tells apart."""
    xs = inputs(setting)
    labels, good = outcomes(setting, xs)
    if setting.reading is Reading.FINITE_ON_DOMAIN:
        labels = labels[good.all(axis=1)]
    if setting.reading is not Reading.FINITE_ON_PAIR:
        return np.array([(labels != labels[:, [i]]).any(axis=0) for i in range(len(xs))])
    return np.array([((labels != labels[:, [i]]) & good & good[:, [i]]).any(axis=0) for i in range(len(xs))])


def classes(setting: Setting) -> int:
    """How many classes of inputs no map finite on the domain tells apart."""
    labels, good = outcomes(setting, inputs(setting))
    return len(np.unique(labels[good.all(axis=1)], axis=1).T)
