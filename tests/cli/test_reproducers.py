"""Scripts that reproduce outcomes with numpy alone, and the second opinion that shares their code."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fpsmt import floats
from fpsmt.errors import UsageError
from fpsmt.files.reproduce import script, second_opinion
from fpsmt.floats import Float, Format, all_values, context
from fpsmt.networks import execution
from fpsmt.networks.outcomes import Sum
from tests.cli.conftest import Fpsmt

CONTEXTS = [
    "float16", "float32", "float64", "bfloat16", "tfloat32", "float8_e4m3fn:nan", "float8_e4m3fn:saturate",
    "float8_e5m2", "float8_e4m3fnuz:nan", "float6_e2m3fn", "float4_e2m1fn", "p3109_k8p3se", "ieee(3,4)",
    "float16:RTN", "float16:RTP:flush", "float16:RNA:flush-inputs", "float32:RTZ:flush-outputs", "float16:saturate",
]  # fmt: skip


def drawn(fmt: Format, rng: random.Random) -> Float:
    """Any code, or one near the ends of the subnormals and normals."""
    edge = 1 << fmt.fraction_bits
    near = rng.choice([0, 1, 2, edge - 1, edge, fmt.largest_code - 1, fmt.largest_code])
    sign = fmt.sign_mask if rng.random() < 0.5 else 0
    return Float(fmt, rng.randrange(1 << fmt.bits) if rng.random() < 0.5 else near | sign)


def test_second_opinion_agrees_with_the_reference() -> None:
    rng = random.Random(20)
    compared = 0
    for _ in range(1500):
        ctx = context(rng.choice(CONTEXTS))
        run = execution(
            "any",
            rng.choice(["never", "any", "always"]),
            rng.choice([None, None, *CONTEXTS]),
            rng.choice([None, None, "exact", *CONTEXTS]),
            rng.choice(["last", "first", "any"]),
        )
        dot, n, bias = rng.random() < 0.6, rng.randint(1, 5), rng.random() < 0.4
        fmt = ctx.format
        terms = tuple((drawn(fmt, rng), drawn(fmt, rng)) if dot else drawn(fmt, rng) for _ in range(n))
        problem = Sum(ctx, terms, drawn(fmt, rng) if bias else None, run)  # type: ignore[arg-type]
        tree = run.random_schedule(n, rng, bias, dot)
        try:
            expected = problem.evaluate(tree)
        except UsageError:  # NaN in a format without one
            with pytest.raises(ValueError, match="NaN"):
                second_opinion(problem, tree)
            continue
        assert second_opinion(problem, tree)[0] == expected, (problem.text, tree)
        compared += 1
    assert compared > 1000


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float6_e3m2fn", "float4_e2m1fn"])
def test_ml_dtypes_add_every_pair(name: str) -> None:
    fmt = floats.format_named(name)
    usual = None if fmt.has_infinity else "nan" if fmt.has_nan else "saturate"
    ctx = context(fmt, overflow=usual)
    values = list(all_values(fmt))
    chosen = values if len(values) < 40 else values[::7] + values[-5:]
    hows = set()
    for a in chosen:
        for b in chosen:
            value, how = second_opinion(Sum(ctx, (a, b)), (0, 1))
            assert value == floats.add(ctx, a, b)
            hows.add(how)
    assert hows == {f"ml_dtypes {name}"}


COMMANDS = {
    "float16": (["--format", "float16", *["32000"] * 4, *["-32000"] * 4], False),
    "float32 fma": (["--format", "float32", "--fma", "any", "--dot", "1,0x1.0008p0", "-0x1.001p0,0x1.0008p0"], True),
    "float64 dot": (["--format", "float64", "--dot", "0.1,0.2,0.3", "3,-0.7,11"], False),
    "accumulator": (["--format", "float16", "--accumulator", "float32", "--dot", "60000,60000,-1", "1,1,3"], False),
    "bfloat16": (["--format", "bfloat16", "--bias", "2^-9", "--bias-place", "any", "1", "2^-8", "-1"], True),
    "saturating": (["--format", "float8_e4m3fn:saturate", "448", "448", "-448", "3"], True),
    "directed": (["--format", "float16:RTP", "1", "2^-11", "2^-12", "-0.5"], True),
    "exact products": (["--format", "float8_e5m2", "--accumulator", "float32", "--products", "exact",
                        "--dot", "1.25,3,-7", "1.5,2^-14,0.5"], True),
    "one term": (["--format", "float16", "-0"], False),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_scripts_run_without_this_package(fpsmt: Fpsmt, tmp_path: Path, name: str) -> None:
    arguments, exact = COMMANDS[name]
    ran = fpsmt("sum", *arguments)
    assert ran.code == 0
    (program,) = (tmp_path / "fpsmt-results").glob("*.py")
    text = program.read_text(encoding="utf-8")
    assert ("Fraction" in text) == exact
    found = _run(program)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == f"all {ran.first.split()[2]} outcomes reproduced"


def _run(program: Path, *missing: str) -> subprocess.CompletedProcess[str]:
    """Runs the script where any import of this package, or of those missing, would fail."""
    block = "import sys\nfor name in sys.argv[2:]: sys.modules[name] = None\nimport runpy\n"
    block += "runpy.run_path(sys.argv[1], run_name='__main__')"
    command = [sys.executable, "-c", block, str(program), "fpsmt", *missing]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_scripts_run_without_ml_dtypes(fpsmt: Fpsmt, tmp_path: Path) -> None:
    fpsmt("sum", "--format", "bfloat16", "1", "2^-8", "2^-8")
    (program,) = (tmp_path / "fpsmt-results").glob("*.py")
    found = _run(program, "ml_dtypes")
    assert found.stdout.splitlines()[-1] == "all 2 outcomes reproduced"


def test_a_wrong_outcome_stops_the_script(fpsmt: Fpsmt, tmp_path: Path) -> None:
    fpsmt("sum", "--format", "float16", "2048", "1", "1")
    (program,) = (tmp_path / "fpsmt-results").glob("*.py")
    program.write_text(program.read_text(encoding="utf-8").replace("'0x6801'", "'0x6802'"), encoding="utf-8")
    found = _run(program)
    assert found.returncode == 1
    assert "0x6801 instead of 0x6802" in found.stderr


def test_titles_cannot_end_the_docstring() -> None:
    problem = Sum(context("float16"), (floats.exactly(floats.float16, 1),))
    text = script(problem, [(problem.terms[0], 0)], 'bad """ title \\')  # type: ignore[list-item]
    compile(text, "script", "exec")
