"""Results at NaN, maps outside the format, runs of two floats."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import (
    AlwaysSeparates,
    Distinguishable,
    Inseparable,
    LineClasses,
    Reading,
    Separable,
    SeparationCount,
    SeparationPoints,
    Setting,
    TogetherBeside,
)
from fpsmt.claims.blocks import Grid, not_joined
from fpsmt.claims.places import allowed_by_index, allowed_places
from fpsmt.claims.separation import Run
from fpsmt.cli import main
from fpsmt.engines import decide
from fpsmt.floats import context, exactly, float8_e4m3fn, float16, from_ordinal, ieee, largest, nan
from fpsmt.functions import FUNCTIONS, Contract, Implementation, Table, WithinFloats
from fpsmt.kernel.kernel import Holds
from fpsmt.kernel.rules.separation import all_maps, separating_maps
from fpsmt.terms import program

NO_INFINITY = context(float8_e4m3fn, overflow="nan")


@pytest.mark.parametrize("contract", [program("0 if x > 0 else 0"), Table(float8_e4m3fn, float8_e4m3fn, (0,) * 256)])
def test_a_result_at_nan_that_is_a_number(contract: Contract) -> None:
    """An activation that gives 0 everywhere, at NaN too, tells nothing apart where overflow gives NaN."""
    x, y = exactly(float8_e4m3fn, 2), exactly(float8_e4m3fn, 2.25)
    setting = Setting(FUNCTIONS["relu"], NO_INFINITY, x, y, Reading.ANY, contract)
    w = -exactly(float8_e4m3fn, 224)
    first, second = (setting.affine(w, exactly(float8_e4m3fn, 0), v)[1] for v in (x, y))
    assert second.is_nan and not first.is_nan
    assert isinstance(all_maps(Inseparable(setting, x, y), {}, []), Holds)
    found = separating_maps(Distinguishable(setting), {"maps": [[w.hex, "0x0p+0"]]}, [])
    assert not isinstance(found, Holds)
    assert decide(Distinguishable(setting)).name == "refuted"


@pytest.mark.parametrize("body", ["x if x > 0 else 0", "0 if x < 0 else x", "x"])
def test_allowed_at_nan_twice(body: str) -> None:
    use = Implementation(FUNCTIONS["relu"], program(body))
    low, high = allowed_by_index(use, NO_INFINITY)
    assert (low[-1], high[-1]) == allowed_places(use, NO_INFINITY, nan(float8_e4m3fn))


def test_maps_of_a_grid_are_values_of_the_format() -> None:
    """A weight that the format does not have tells nothing apart."""
    tiny = ieee(2, 3)
    ends = from_ordinal(tiny, -3), from_ordinal(tiny, 3)
    setting = Setting(FUNCTIONS["identity"], context(tiny), *ends, Reading.ANY, WithinFloats(1))
    pairs = np.array(list(combinations(range(7), 2)))
    assert len(not_joined(setting, pairs, [Grid(1, -2, 4)])) < len(pairs)
    for exponent in (2, 5, -4):
        assert len(not_joined(setting, pairs, [Grid(exponent, -2, 4)])) == len(pairs)


def test_a_run_of_two_floats_has_no_points() -> None:
    ends = from_ordinal(float16, 5), from_ordinal(float16, 6)
    run = Run(Implementation(FUNCTIONS["tanh"]), context(float16), *ends)
    assert decide(SeparationPoints(run, ())).name == "proved"
    assert decide(SeparationCount(run, 0)).name == "proved"
    assert decide(AlwaysSeparates(run)).name == "refuted"


def test_a_plot_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    command = ["separate", "--format", "float8_e4m3", "--activation", "tanh", "--no-save"]
    assert main([*command, "--plot", str(tmp_path / "missing" / "a.svg")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_values_that_are_no_float64_numbers() -> None:
    """Fifteen bits, but 2^2047 among them: other ways decide, or nothing is said."""
    ctx = context("ieee(12,3)")
    high, one = largest(ctx.format), exactly(ctx.format, 1)
    of = Setting(FUNCTIONS["sigmoid"], ctx, -high, high, Reading.FINITE_ON_DOMAIN)
    assert decide(LineClasses(of, ())).name == decide(TogetherBeside(of, 1, 0, 1)).name == "unknown"
    assert decide(Separable(of, one, -one)).name == "proved" and decide(Distinguishable(of)).name == "refuted"
