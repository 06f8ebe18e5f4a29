"""Public reports of inputs that a first layer cannot tell apart, with exact answers."""

from __future__ import annotations

import json

import pytest

from fpsmt.claims import Reading, Separable, Setting
from fpsmt.cli import main
from fpsmt.engines import decide
from fpsmt.floats import bfloat16, context, float32, largest, nearest
from fpsmt.functions import function_named


def ask(capsys, fmt: str, pair: str) -> tuple[int, str, dict]:
    arguments = ["distinguish", "--format", fmt, "--activation", "identity", "--pair", pair, "--no-save"]
    code = main(arguments)
    first = capsys.readouterr().out.splitlines()[0]
    main([*arguments, "--json", "-"])
    return code, first, json.loads(capsys.readouterr().out)


def test_positions_in_bfloat16_have_two_classes(capsys) -> None:
    """Positions 65536 + k, k < 512: 0…256 become 65536 (256 is a tie), 257…511 become 66048."""
    values = [nearest(bfloat16, 65536 + k) for k in range(512)]
    assert [sum(v.fraction == n for v in values) for n in (65536, 66048)] == [257, 255]
    ends = largest(bfloat16, True), largest(bfloat16)
    setting = Setting(function_named("identity"), context(bfloat16), *ends, Reading.ANY)
    assert decide(Separable(setting, values[0], values[-1])).name == "proved"
    assert ask(capsys, "bfloat16", "65536,65792")[:2] == (1, "pair same 0x1p+16")
    code, first, data = ask(capsys, "bfloat16", "65792,65793")
    assert code == 0 and first.startswith("pair apart w=")
    assert data["verdict"] == "proved" and set(data["result"]["map"]) == {"w", "b"}


@pytest.mark.parametrize(("pair", "value"), [("999.3986,998.3897", 1000), ("988.4937,987.1741", 988)])
def test_diffusion_steps_merge_in_bfloat16(capsys, pair: str, value: int) -> None:
    code, first, data = ask(capsys, "bfloat16", pair)
    assert code == 1 and first == f"pair same {nearest(bfloat16, value).hex}"
    assert data["verdict"] == "refuted"
    assert ask(capsys, "float32", pair)[0] == 0


def test_labels_in_float32(capsys) -> None:
    """Above 2^24 the step is 2: 16777232 is exact, 16777233 is not."""
    assert ask(capsys, "float32", "16777232,16777230")[0] == 0
    assert ask(capsys, "float32", "16777232,16777233")[:2] == (1, f"pair same {nearest(float32, 16777232).hex}")
    assert all(nearest(float32, n).fraction == n for n in (2**23, 2**23 + 1, 2**24 - 1, 2**24))
