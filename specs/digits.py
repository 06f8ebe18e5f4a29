"""A digits classifier: does the order of its sums, or fma, change what it predicts for real test images?

The network (64 → 32 → 10, ReLU) was trained by ``examples/train_digits.py``, and the 40 images are scikit-learn's
digits that it did not see in training: the first 32 of the test set as it was split, then the 8 others with the
smallest margin between the two greatest outputs in real arithmetic.  The last 8 were chosen because they are hard, so
that the share of images that break says nothing about digits in general; the first 32 were not chosen.  The claims
are about these 40 images and no others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fpsmt.claims import Case, PredictionInvariant, spec
from fpsmt.errors import UsageError
from fpsmt.floats import context
from fpsmt.floats.vector import round_array, to_floats
from fpsmt.networks import Network, parse_execution

ARRAYS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "digits.npz"
SHAPES = {"weights1": (32, 64), "bias1": (32,), "weights2": (10, 32), "bias2": (10,)}


def load(path: Path = ARRAYS) -> dict[str, Any]:
    """The saved parameters and pixels; a usage error when the file is missing or not the one meant."""
    if not path.is_file():
        raise UsageError(f"{path} is missing: restore it, or run python examples/train_digits.py (needs scikit-learn)")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*SHAPES, "pixels")}
    except (KeyError, ValueError, OSError, BadZipFile) as error:
        raise UsageError(f"{path} is not the file that examples/train_digits.py writes: {error}") from None
    for name, shape in SHAPES.items():
        got = arrays[name]
        if got.shape != shape or got.dtype != np.float32:
            raise UsageError(f"{path}: {name} has shape {got.shape} of {got.dtype}, not {shape} of float32")
    pixels = arrays["pixels"]
    if pixels.ndim != 2 or pixels.shape[1] != 64 or pixels.dtype != np.uint8 or pixels.max(initial=0) > 16:
        raise UsageError(f"{path}: pixels should be rows of 64 unsigned bytes up to 16")
    return arrays


def claim(format: str, execution: str) -> PredictionInvariant:
    """About all images, with the parameters rounded once into the format; pixel/16 needs no rounding."""
    arrays, ctx = load(), context(format)
    w1, b1, w2, b2 = (round_array(ctx, arrays[name]) for name in SHAPES)
    network = Network.sequential(ctx, 64, [(w1, b1), "relu", (w2, b2)])
    images = tuple(tuple(to_floats(ctx.format, row / 16.0)) for row in arrays["pixels"])
    return PredictionInvariant(network, images, parse_execution(execution))


@spec(
    "digits-float32",
    source="the classifier of examples/train_digits.py on real test images",
    cases=[Case({"execution": "any fma=any"})],
)
def digits_float32(execution: str) -> PredictionInvariant:
    """In float32 the prediction is the same under every order of every sum, with or without any fma."""
    return claim("float32", execution)


@spec(
    "digits-bfloat16",
    source="the classifier of examples/train_digits.py on real test images",
    cases=[Case({"execution": "any"}, "refuted"), Case({"execution": "any fma=any"}, "refuted")],
)
def digits_bfloat16(execution: str) -> PredictionInvariant:
    """With parameters rounded to bfloat16 and bfloat16 accumulation the prediction depends on the order.

    False on all of the eight hard images, and on one of the 32 that were not chosen.
    """
    return claim("bfloat16", execution)


@spec(
    "digits-bfloat16-wide-sums",
    source="the classifier of examples/train_digits.py on real test images",
    cases=[
        Case({"execution": "any accumulator=float32 products=bfloat16"}),
        Case({"execution": "any fma=any accumulator=float32"}),
        Case({"execution": "any accumulator=float32 products=exact"}),
    ],
)
def digits_bfloat16_wide_sums(execution: str) -> PredictionInvariant:
    """With bfloat16 parameters, inputs and layer outputs, but sums in float32, the order has no effect again.

    Products rounded to bfloat16, rounded to float32 (which holds them exactly), or kept exact.
    """
    return claim("bfloat16", execution)
