"""Contracts of programs at signed zeros and where one value is used twice; error analysis against all inputs."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import MeetsContract
from fpsmt.cli import main
from fpsmt.floats import Float, context, exactly, float16, from_ordinal, zero
from fpsmt.functions import FUNCTIONS, Implementation, WithinUlps
from fpsmt.kernel.kernel import Fails, Holds
from fpsmt.kernel.rules.contracts import all_inputs, error_analysis
from fpsmt.terms import LIBRARY, program
from fpsmt.terms.program_errors import SERIES

HALF = context("float16")
ZEROS = zero(float16, True), zero(float16)
#: Programs that are far off, or only just right, somewhere.
OWN = [
    ("exp", "1 + x if x < 0.03 and x > -0.03 else exp(x)"), ("exp", "0 if x < -9 else exp(x)"),
    ("exp", "(exp(x)/8192)*8192"), ("sqrt", "x/sqrt(x)"), ("log", "-log(1/x)"), ("log1p", "x - x*x/2"),
    ("erf", "1 - erfc(x)"), ("tanh", "1 if x > 4.5 else -1 if x < -4.5 else tanh(x)"),
    ("swish", "x*0.5*(1 + tanh(x/2))"),
]  # fmt: skip


def claim(function: str, body: str, ulps: str, low: Float, high: Float, **options: str) -> MeetsContract:
    use = Implementation(FUNCTIONS[function], program(body, **options))  # type: ignore[arg-type]
    return MeetsContract(use, HALF, WithinUlps(Fraction(ulps)), float16, low, high)


@pytest.mark.parametrize(
    "low, high, wrong",
    [(-1, 0, True), (-1, 1, True), (0, 1, True), (1, 2, False), (-2, -1, False)],
)
@pytest.mark.parametrize("ends", [ZEROS, ZEROS[::-1]])
def test_both_zeros_are_tried(low: int, high: int, wrong: bool, ends: tuple[Float, Float]) -> None:
    """A program that is wrong at zero only: an interval may end at −0 or begin at +0."""
    body = "tanh(x) if x < 0 or x > 0 else 1"
    pair = (ends[0] if low == 0 else exactly(float16, low), ends[1] if high == 0 else exactly(float16, high))
    asked = claim("tanh", body, "2", *pair)
    found = error_analysis(asked, {"intervals": 1000}, [])
    assert isinstance(found, Fails if wrong else Holds)
    if isinstance(found, Fails):
        assert asked.replay(found.counterexample).violates


@pytest.mark.parametrize(
    "body", ["e = exp(x); e/e", "e = exp(x); e - e", "e = exp(x); e*e", "e = exp(x); fma(e, e, e)"]
)
def test_a_value_that_is_used_twice_is_one_value(body: str) -> None:
    """One operation with the same operand twice takes one of its values."""
    use, f = program(body, exp="ulps=2"), FUNCTIONS["exp"]
    for x in (0.5, -3.0, 4.0):
        at = exactly(float16, x)
        low, high = use.arrays(f, HALF, np.array([x]), float16)  # type: ignore[misc]
        assert [float(v) for v in use.allowed(f, HALF, at)] == [low[0], high[0]]
    assert program("e = exp(x); e/e", exp="ulps=2").outcomes(HALF, exactly(float16, 1)) == {exactly(float16, 1)}


@pytest.mark.parametrize("seed", range(3))
def test_error_analysis_against_all_inputs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any neighbours tried one by one, so that the bounds decide; also near Ω and among subnormals."""
    monkeypatch.setattr("fpsmt.kernel.rules.contracts.LEAF", 2)
    rng = np.random.default_rng(seed)
    cases = [(entry.function, entry.body) for entry in LIBRARY.values() if entry.function in SERIES] + 2 * OWN
    held = 0
    for _ in range(20):
        function, body = cases[rng.integers(len(cases))]
        first = int(
            rng.choice([rng.integers(-0x7B00, 0x7B00), rng.integers(-0x500, 0x500), rng.integers(0x3000, 0x5000)])
        )
        low, high = from_ordinal(float16, first), from_ordinal(float16, first + int(rng.choice([20, 100, 250])))
        fma = str(rng.choice(["never", "always", "any"]))
        asked = claim(function, body, str(rng.choice(["1/2", "3/4", "1", "3/2", "2", "4", "20"])), low, high, fma=fma)
        found = error_analysis(asked, {"intervals": 100}, [])
        if isinstance(found, Holds):
            held += 1
            assert isinstance(all_inputs(asked, {}, []), Holds), asked.text
        if isinstance(found, Fails):
            assert asked.replay(found.counterexample).violates, asked.text
    assert held >= 4


ROUTINES = """
import sys
import numpy as np
print("imported")
def leaves(x): sys.exit(0)
def prints(x):
    print("called")
    return np.tanh(x)
"""


def test_routines_that_leave_or_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leaving with 0 is not a proof, and the first line stays the result."""
    (tmp_path / "corner_routines.py").write_text(ROUTINES)
    (tmp_path / "corner_leaves.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--against", "tanh", "--format", "float16", "--domain", "1:1.25", "--no-save"]
    for name in ("corner_routines:leaves", "corner_leaves:f"):
        assert main(["audit", name, *options]) == 2
        assert "SystemExit" in capsys.readouterr().err
    assert main(["audit", "corner_routines:prints", *options]) == 0
    assert capsys.readouterr().out.startswith("audit max_ulps")
    sys.modules.pop("corner_routines", None)
