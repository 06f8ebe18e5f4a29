"""``fpsmt stability``: verdicts, files, resuming, interruption, and bad files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fpsmt.cli import main
from fpsmt.networks import Network
from fpsmt.networks.serial import save_arrays
from tests.stability.conftest import Stability, start

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.npz"


def result(folder: Path) -> dict:  # type: ignore[type-arg]
    (path,) = (folder / "fpsmt-results").glob("stability-*.json")
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def test_the_known_break(stability: Stability, tmp_path: Path) -> None:
    """Input 0 sums 2^24, 1, 1, −2^24 to 0, 1 or 2 by the order, less 1.5; the other class has 0.25."""
    np.save("labels.npy", np.array([0, 0, 1]))
    ran = stability("known.npz", "known.npy", "--labels", "labels.npy", "--jobs", "1")
    assert ran.code == 1 and ran.first == "stability 3 certified 2 broken 1 unknown 0"
    assert "class 1 or 0" in ran.out or "class 0 or 1" in ran.out
    assert "numpy float32" in ran.out and "certified and equal to the label: 2 of 3" in ran.out
    data = result(tmp_path)
    assert data["verdict"] == "refuted" and data["result"]["broken"] == 1
    rows = data["result"]["inputs"]
    assert [row["verdict"] for row in rows] == ["broken", "certified", "certified"]
    assert sorted(rows[0]["classes"]) == [0, 1] and rows[1]["classes"] == [0] and rows[2]["classes"] == [1]
    assert rows[0]["outputs"][0] != rows[0]["outputs"][1]
    path = next((tmp_path / "fpsmt-results").glob("*.json"))
    assert main(["check", str(path)]) == 0
    assert main(["replay", str(path)]) == 0


def test_the_reproducer_needs_numpy_alone(stability: Stability, tmp_path: Path) -> None:
    """In a process without the package; and it fails when a schedule is changed."""
    stability("known.npz", "known.npy", "--fma", "any", "--jobs", "1")
    (program,) = (tmp_path / "fpsmt-results").glob("*.py")
    text = program.read_text()
    assert "fpsmt." not in text.replace("fpsmt.networks", "")
    blocked = "import sys; sys.modules['fpsmt'] = None; import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
    ran = subprocess.run([sys.executable, "-I", "-c", blocked, str(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "all 1 inputs reproduced" in ran.stdout
    changed = text.replace("'outputs': ['0x", "'outputs': ['0x1")
    assert changed != text
    program.write_text(changed)
    assert subprocess.run([sys.executable, "-I", str(program)], capture_output=True).returncode == 1


@pytest.mark.parametrize("how", [["--order", "left-to-right"], ["--accumulator", "float64"]])
def test_nothing_breaks_in_one_order_or_a_wide_sum(stability: Stability, how: list[str]) -> None:
    ran = stability("known.npz", "known.npy", "--no-save", *how)
    assert ran.code == 0 and ran.first == "stability 3 certified 3 broken 0 unknown 0"


def test_ulps(stability: Stability, tmp_path: Path) -> None:
    """100, 101 or 102 by the order: 2^18 ulps; on the other inputs nothing moves."""
    with np.load("known.npz") as file:
        np.savez("near.npz", **{**file, "bias2": np.float32([100, 0.25])})
    ran = stability("near.npz", "known.npy", "--ulps", str(2**18 - 1), "--jobs", "1")
    assert ran.code == 1 and ran.first == "stability 3 certified 2 broken 1 unknown 0"
    path = next((tmp_path / "fpsmt-results").glob("*.json"))
    assert main(["check", str(path)]) == 0
    assert json.loads(path.read_text())["result"]["obligations"][0]["how"] == "bounds within ulps"
    ran = stability("near.npz", "known.npy", "--ulps", str(2**18), "--no-save")
    assert ran.code == 0 and ran.first == "stability 3 certified 3 broken 0 unknown 0"


def test_one_output_is_no_class(stability: Stability) -> None:
    np.savez("one.npz", weights1=np.float32([[1, 1, 1, 1]]))
    ran = stability("one.npz", "known.npy", "--no-save")
    assert ran.code == 2 and "one output" in ran.err and "--ulps" in ran.err
    assert stability("one.npz", "known.npy", "--no-save", "--ulps", "1").code == 0


def test_nan_and_overflow_break(stability: Stability) -> None:
    """A NaN input has no class in any execution; 3·10^38 + 3·10^38 − 3·10^38 is infinite or not by the order."""
    np.save("nan.npy", np.float32([[np.nan, 0, 0, 0]]))
    ran = stability("known.npz", "nan.npy", "--no-save", "--jobs", "1")
    assert ran.code == 1 and "class NaN or NaN" in ran.out
    big = np.float32(3e38)
    np.savez("big.npz", weights1=np.float32([[big, big, -big, 0], [0, 0, 0, 1]]), bias1=np.float32([0, big * 1.1]))
    ran = stability("big.npz", "known.npy", "--no-save", "--jobs", "1")
    assert ran.code == 1 and "certified 2 broken 1" in ran.first


def test_rounding_is_an_explicit_step(stability: Stability) -> None:
    np.save("tenth.npy", np.float64([[0.1, 0, 0, 1]]))
    ran = stability("known.npz", "tenth.npy", "--no-save")
    assert ran.code == 2 and "input 0, element 0 is" in ran.err and "--format float32" in ran.err
    ran = stability("known.npz", "tenth.npy", "--no-save", "--format", "bfloat16")
    assert "rounded to bfloat16: 0 of 16 parameters and 1 of 4 input values changed" in ran.err


def test_digits_in_bfloat16(stability: Stability, tmp_path: Path) -> None:
    """Ten real images: most certified although the crude bounds settle none; one hard one broken, and reproduced."""
    with np.load(EXAMPLE) as file:
        np.save("some.npy", np.concatenate([file["pixels"][:9], file["pixels"][32:33]]))
    ran = stability(str(EXAMPLE), "some.npy", "--scale", "1/16", "--format", "bfloat16")
    assert ran.code == 1
    rows = result(tmp_path)["result"]["inputs"]
    assert sum(row["verdict"] == "certified" for row in rows) >= 5
    assert rows[9]["verdict"] == "broken"


def test_digits_in_float32(stability: Stability) -> None:
    ran = stability(str(EXAMPLE), f"{EXAMPLE}:pixels", "--scale", "1/16", "--fma", "any", "--no-save")
    assert ran.code == 0 and ran.first == "stability 40 certified 40 broken 0 unknown 0"


def test_time_limit_then_resume(stability: Stability, tmp_path: Path) -> None:
    """What the time limit leaves open is unknown, not final, and taken up again; the rest is not computed again."""
    ran = stability("known.npz", "known.npy", "--timeout", "1e-9")
    assert ran.code == 3 and ran.first == "stability 3 certified 0 broken 0 unknown 3"
    assert "the time limit was passed" in ran.out
    ran = stability("known.npz", "known.npy", "--resume", "--jobs", "1")
    assert ran.code == 1 and "0 of 3 inputs were decided" in ran.err
    ran = stability("known.npz", "known.npy", "--resume", "--timeout", "1e-9")
    assert ran.code == 1 and ran.first == "stability 3 certified 2 broken 1 unknown 0"
    assert "3 of 3 inputs were decided" in ran.err
    ran = stability("known.npz", "known.npy", "--resume", "--no-save")
    assert ran.code == 2 and "leave out --no-save" in ran.err


def test_a_break_that_no_longer_replays_is_refused(stability: Stability, tmp_path: Path) -> None:
    stability("known.npz", "known.npy", "--jobs", "1")
    path = next((tmp_path / "fpsmt-results").glob("*.json"))
    data = json.loads(path.read_text())
    del data["sha256"]
    data["result"]["inputs"][0]["counterexample"]["schedules"] = [{}, {}]
    path.write_text(json.dumps(data))
    ran = stability("known.npz", "known.npy", "--resume")
    assert ran.code == 1 and ran.out == "" and "does not replay" in ran.err


def test_interrupted_work_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle: exit code 130, what was decided is in the file, and is resumed."""
    with np.load(EXAMPLE) as file:
        np.save(tmp_path / "many.npy", np.tile(file["pixels"], (8, 1)))
    arguments = [str(EXAMPLE), "many.npy", "--scale", "1/16", "--format", "bfloat16", "--jobs", "1", "--json", "-"]
    process = start(tmp_path, *arguments)
    folder, deadline = tmp_path / "fpsmt-results", time.monotonic() + 240
    while not list(folder.glob("stability-*.json")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume goes on from there" in err and "Traceback" not in err
    data = result(tmp_path)
    decided = len(data["result"]["inputs"])
    assert 0 < decided < 320 and data["verdict"] == "unknown" and data["result"]["not_decided"] == 320 - decided
    monkeypatch.chdir(tmp_path)
    main(["stability", *arguments, "--resume", "--timeout", "1e-9"])
    again = result(tmp_path)["result"]
    assert again["certified"] == data["result"]["certified"] and again["broken"] == data["result"]["broken"]


def test_saved_networks_are_read(stability: Stability, tmp_path: Path) -> None:
    network = Network.sequential("float16", 4, [([[1, 1, 1, 1], [0, 0, 0, 1]], None), "tanh"])
    save_arrays(network, tmp_path / "saved.npz")
    ran = stability("saved.npz", "known.npy", "--no-save")
    assert ran.first.startswith("stability 3 certified") and "a saved network" in ran.err


BAD = [
    (["model.onnx", "known.npy"], "model.onnx: No such file or directory"),
    (["nowhere.npz", "known.npy"], "nowhere.npz: no such file"),
    (["known.npy", "known.npy"], "known.npy: a model is an ONNX file, a .npz file"),
    (["known.npz", "nowhere.npy"], "nowhere.npy: no such file"),
    (["known.npz", "cut.npy"], "cut.npy cannot be read: it is truncated"),
    (["known.npz", "pickled.npy"], "pickled.npy cannot be read: it holds Python objects (pickled)"),
    (["pickled.npz", "known.npy"], "pickled.npz: weights1 cannot be read: it holds Python objects (pickled)"),
    (["cut.npz", "known.npy"], "cut.npz cannot be read"),
    (["known.npz", "three.npy"], "three.npy has shape (2, 3): the network takes (N, 4)"),
    (["known.npz", "empty.npy"], "empty.npy has no inputs"),
    (["known.npz", "text.npy"], "text.npy holds elements of type"),
    (["known.npz", "both.npz"], "both.npz has 2 arrays: name one of them"),
    (["known.npz", "both.npz:other"], "both.npz has no array 'other': it has inputs, more"),
    (["both.npz", "known.npy"], "both.npz holds inputs, more: a model needs weights1"),
    (["mixed.npz", "known.npy"], "mixed.npz: the arrays are of float32, float64"),
    (["odd.npz", "known.npy"], "odd.npz: weights1 has shape (2, 4), bias1 (3,)"),
    (["gap.npz", "known.npy"], "gap.npz has 1 arrays of weights, and weights1 is missing"),
    (["known.npz", "known.npy", "--labels", "known.npy"], "the labels of 3 inputs are 3 integers"),
    (["known.npz", "known.npy", "--scale", "1/3"], "--scale 1/3: write a power of two"),
    (["known.npz", "known.npy", "--format", "fp8"], "--format: unknown format 'fp8'"),
    (["known.npz", "known.npy", "--format", "float8_e4m3"], "is beyond the range of float8_e4m3"),
    (["known.npz", "known.npy", "--order", "zigzag"], "--order: unknown order 'zigzag'"),
    (["known.npz", "known.npy", "--ulps", "-1"], "--ulps -1: write a whole number"),
    (["known.npz"], "Missing argument 'INPUTS'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_files_and_options(stability: Stability, tmp_path: Path, arguments: list[str], message: str) -> None:
    good = (tmp_path / "known.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(good[:-8])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "known.npz").read_bytes()[:200])
    np.save("pickled.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.savez("pickled.npz", weights1=np.array([[{}, 1]], dtype=object))
    np.save("three.npy", np.zeros((2, 3)))
    np.save("empty.npy", np.zeros((0, 4)))
    np.save("text.npy", np.array([["a", "b", "c", "d"]]))
    np.savez("mixed.npz", weights1=np.zeros((2, 4)), bias1=np.zeros(2, np.float32))
    np.savez("odd.npz", weights1=np.zeros((2, 4)), bias1=np.zeros(3))
    np.savez("gap.npz", weights2=np.zeros((2, 4)))
    ran = stability(*arguments, "--no-save")
    assert ran.code == 2, ran
    assert ran.out == "" and message in ran.err and len(ran.err.strip().splitlines()) <= 2
