"""Two coordinates: every map (w₁, w₂, b) at every pair of vectors of a tiny format, against one dimension."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fpsmt.claims import Inseparable, Reading, Setting
from fpsmt.claims.places import allowed_places, place_of
from fpsmt.floats import Float, exactly, from_ordinal, ieee
from fpsmt.floats import context as context_of
from fpsmt.floats.vector import arithmetic, to_floats
from fpsmt.functions import FUNCTIONS
from fpsmt.kernel.kernel import Holds
from fpsmt.kernel.rules.separation import all_maps

TINY = ieee(2, 2)
CONTEXT = context_of(TINY)
NUMBERS = [from_ordinal(TINY, p) for p in range(-TINY.largest_code, TINY.largest_code + 1)]
Pair = tuple[tuple[float, ...], tuple[float, ...]]


def inseparable_vectors(setting: Setting, inputs: list[float]) -> set[Pair]:
    """The pairs of vectors in inputs² that no admissible map tells apart (two terms have one order up to swapping)."""
    fmt, vector = setting.context.format, arithmetic(setting.context)
    parameters = np.array([float(v) for v in NUMBERS])
    vectors = list(product(inputs, repeat=2))
    first, second = np.array(vectors).T
    results: dict[int, int] = {}

    def labels(y: NDArray[Any]) -> NDArray[np.int64]:
        places = np.array([place_of(v) for v in to_floats(fmt, y.reshape(-1))])
        for place in set(places.tolist()) - results.keys():
            at = to_floats(fmt, y.reshape(-1)[places == place][:1])[0]
            results[place] = allowed_places(setting.implementation, setting.context, at)[0]
        return np.array([results[place] for place in places.tolist()]).reshape(y.shape)

    together = np.ones((len(vectors), len(vectors)), bool)
    for w1, w2 in product(parameters, repeat=2):
        products = vector.mul(w1, first), vector.mul(w2, second)
        total = vector.add(*products)
        moved = vector.add(total[None, :], parameters[:, None])
        finite = np.isfinite(products[0]) & np.isfinite(products[1]) & np.isfinite(total) & np.isfinite(moved)
        if setting.reading is Reading.FINITE_ON_DOMAIN:
            moved, finite = moved[finite.all(axis=1)], finite[finite.all(axis=1)]
        if not len(moved):
            continue
        for label, good in zip(labels(moved), finite):
            differ = label[:, None] != label
            together &= ~(differ & good[:, None] & good if setting.reading is Reading.FINITE_ON_PAIR else differ)
    return {(vectors[i], vectors[j]) for i, j in combinations(range(len(vectors)), 2) if together[i, j]}


def inseparable_numbers(setting: Setting, inputs: list[Float]) -> set[tuple[float, float]]:
    """The same in one dimension, by the kernel's rule."""
    return {
        (float(x), float(y))
        for x, y in combinations(inputs, 2)
        if isinstance(all_maps(Inseparable(setting, x, y), {}, []), Holds)
    }


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize("ends", [(-3, 3), (-1, 1), (0.5, 3)])
@pytest.mark.parametrize("name", ["cos", "sqrt1p_square"])
def test_two_coordinates_against_one(name: str, ends: tuple[float, float], reading: Reading) -> None:
    """A pair is inseparable only where each coordinate is (zero weights elsewhere); with a 0 elsewhere also if."""
    low, high = (exactly(TINY, end) for end in ends)
    setting = Setting(FUNCTIONS[name], CONTEXT, low, high, reading)
    inputs = [x for x in NUMBERS if ends[0] <= float(x) <= ends[1]]
    numbers = inseparable_numbers(setting, inputs)
    vectors = inseparable_vectors(setting, [float(x) for x in inputs])
    assert all(a == b or (min(a, b), max(a, b)) in numbers for x, y in vectors for a, b in zip(x, y))
    if ends[0] <= 0:
        assert {(x[0], y[0]) for x, y in vectors if x[1] == y[1] == 0} == numbers
        assert {(x[1], y[1]) for x, y in vectors if x[0] == y[0] == 0} == numbers


@pytest.mark.parametrize("name, count", [("cos", 84), ("cosh", 84), ("sqrt1p_square", 160), ("gaussian", 160)])
def test_the_exact_set_on_the_whole_format(name: str, count: int) -> None:
    """On all of the format, maps finite on the domain: exactly the pairs of which both coordinates are inseparable."""
    setting = Setting(FUNCTIONS[name], CONTEXT, NUMBERS[0], NUMBERS[-1], Reading.FINITE_ON_DOMAIN)
    numbers = inseparable_numbers(setting, NUMBERS)
    same = {(float(x), float(x)) for x in NUMBERS} | numbers | {(b, a) for a, b in numbers}
    vectors = list(product([float(x) for x in NUMBERS], repeat=2))
    expected = {(x, y) for x, y in combinations(vectors, 2) if all(pair in same for pair in zip(x, y))}
    assert inseparable_vectors(setting, [float(x) for x in NUMBERS]) == expected
    assert len(expected) == count
