"""Bounds of networks whose activations are float programs."""

from __future__ import annotations

import numpy as np
import pytest

import fpsmt.terms  # noqa: F401  (makes programs known)
from fpsmt.floats.vector import to_floats
from fpsmt.networks import Network
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.interpreter import run

SWISH = "swish:program(x/(1 + exp(-x)) | exp ulps=1)"


def network(fmt: str) -> Network:
    weights = [[1.0, -0.5], [0.25, 2.0]]
    return Network.sequential(fmt, 2, [(weights, [0.5, 0.0]), SWISH, (weights, [0.0, 0.0])])


@pytest.mark.parametrize("fmt", ["float8_e4m3", "float16", "bfloat16", "float32"])
def test_every_value_in_a_box_is_enclosed(fmt: str) -> None:
    net = network(fmt)
    low, high = np.array([[-1.0, 0.5]]), np.array([[-0.5, 1.0]])
    found = enclosures(net, low, high)
    for x in (low[0], high[0], (low[0] + high[0]) / 2):
        trace = run(net, to_floats(net.input.format, x))
        for name, (least, most) in found.items():
            values = [float(y) for y in trace.values[name]]
            assert (least[0] <= values).all() and (values <= most[0]).all()


def test_a_point_of_float32_is_enclosed() -> None:
    net = network("float32")
    least, most = enclosures(net, [[0.5, 0.25]])[net.nodes[2].name]
    assert np.isfinite(least).all() and (least <= most).all()
