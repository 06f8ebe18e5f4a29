"""``fpsmt verify`` interrupted by Ctrl-C, SIGTERM, SIGKILL and the time limit, and gone on with."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from fpsmt import kernel
from fpsmt.cli import main
from fpsmt.commands.common import TimeLimit, time_limit
from fpsmt.engines import safety, splitting
from tests.onnx.building import build, save
from tests.verify.conftest import Verify

SIZES = (4, 16, 16, 2)
COMMAND = ["--network", "model.onnx"]
QUERY = (
    "".join(f"(declare-const {v} Real)" for v in ("X_0", "X_1", "X_2", "X_3", "Y_0", "Y_1"))
    + "".join(f"(assert (>= X_{k} -1))(assert (<= X_{k} 1))" for k in range(4))
    + "(assert (>= (- Y_0 Y_1) {}))"
)
SAFE = QUERY.format("0.9")


def slowly(arguments: list[str]) -> None:
    """The command in a process of its own: each block takes a while, and states are kept at once."""
    step = safety.Search.step
    splitting.PAUSE = splitting.SELDOM = 0.0
    safety.Search.step = lambda *given: (time.sleep(0.15), step(*given))[1]  # type: ignore[assignment, method-assign]
    with open("out", "w") as out, open("errors", "w") as errors, redirect_stdout(out), redirect_stderr(errors):
        code = main(arguments)
    os._exit(code)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "BATCH", 16)
    monkeypatch.setattr(splitting, "ALONE", 4)


@pytest.fixture(autouse=True)
def model(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    nodes, constants, last = [], {}, "x"
    for k, (n, m) in enumerate(pairwise(SIZES)):
        constants[f"w{k}"] = (rng.normal(size=(m, n)) * 1.5 / np.sqrt(n)).astype(np.float32)
        constants[f"b{k}"] = (rng.normal(size=m) * 0.1).astype(np.float32)
        end = k == len(SIZES) - 2
        nodes.append(helper.make_node("Gemm", [last, f"w{k}", f"b{k}"], ["y" if end else f"z{k}"], transB=1))
        if not end:
            nodes.append(helper.make_node("Relu", [f"z{k}"], [f"h{k}"]))
        last = f"h{k}"
    save(build(nodes, {"x": [1, SIZES[0]]}, {"y": [1, SIZES[-1]]}, constants), tmp_path / "model.onnx")


def partial(folder: Path) -> Path | None:
    return next((folder / "fpsmt-results").glob("verify-*.partial.json"), None)


def children(pid: int | None) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_killed_and_gone_on_with(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "q.vnnlib").write_text(SAFE)
    seen: list[Any] = []
    for number in (signal.SIGTERM, signal.SIGKILL):
        words = ["verify", "q.vnnlib", *COMMAND, "--jobs", "2", "--resume"]
        process = multiprocessing.get_context("fork").Process(target=slowly, args=(words,))
        process.start()
        known = len(seen[-1]["open"]) + 12 if seen else 40
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and process.is_alive():
                time.sleep(0.02)
                path = partial(tmp_path)
                if path is not None and children(process.pid):
                    state = json.loads(path.read_text())["result"]["state"]
                    if len(state["open"] or "") > known:
                        break
            workers = children(process.pid)
            os.kill(process.pid or 0, number)
            process.join(30)
        finally:
            process.kill()
        out, errors = (tmp_path / "out").read_text(), (tmp_path / "errors").read_text()
        assert workers, errors
        deadline = time.monotonic() + 10
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(alive, workers))
        if number == signal.SIGTERM:
            assert process.exitcode == 130 and out == "unknown\n" and "--resume goes on from there" in errors
        else:
            assert process.exitcode == -signal.SIGKILL and "going on from" in errors
        path = partial(tmp_path)
        assert path is not None
        seen.append(json.loads(path.read_text())["result"]["state"])
    ran = verify(SAFE, *COMMAND, "--resume")
    assert ran.code == 0 and ran.out == "unsat\n" and "going on from" in ran.errors
    assert partial(tmp_path) is None
    (whole,) = (tmp_path / "fpsmt-results").glob("verify-*.json")
    assert main(["check", str(whole)]) == 0


def test_ctrl_c_and_the_time_limit(verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, step = [0], safety.Search.step

    def stopping(self: Any, block: Any) -> Any:
        calls[0] += 1
        if calls[0] == 9:
            raise KeyboardInterrupt
        if calls[0] == 14:
            time.sleep(60)
        return step(self, block)

    monkeypatch.setattr(safety.Search, "step", stopping)
    one = ["--jobs", "1"]
    ran = verify(SAFE, *COMMAND, *one)
    assert ran.code == 130 and ran.out == "unknown\n" and "interrupted: " in ran.errors
    ran = verify(SAFE, *COMMAND, *one, "--resume", "--timeout", "2")
    assert ran.code == 3 and ran.out == "timed-out\n" and "--resume goes on from there" in ran.errors
    path = partial(tmp_path)
    assert path is not None and main(["check", str(path)]) == 3
    state = path.read_text()
    ran = verify(QUERY.format("0.91"), *COMMAND, *one, "--resume")
    assert ran.out.endswith("\nunsat\n") and "starting from the beginning" in ran.errors
    path.write_text(state[:-20])
    ran = verify(SAFE, *COMMAND, *one, "--resume")
    assert ran.code == 2 and "truncated" in ran.errors
    path.write_text(state)
    before = calls[0]
    ran = verify(SAFE, *COMMAND, *one, "--resume")
    assert ran.out == "unsat\n" and partial(tmp_path) is None
    resumed = calls[0] - before
    verify(SAFE, *COMMAND, *one)
    assert 0 < resumed < calls[0] - before - resumed


def test_resume_needs_a_folder(verify: Verify) -> None:
    ran = verify(SAFE, *COMMAND, "--resume", "--no-save")
    assert ran.code == 2 and "leave out --no-save" in ran.errors


@pytest.mark.parametrize("kind", [TimeLimit, KeyboardInterrupt])
def test_an_interruption_that_compiled_code_hides(
    kind: type[BaseException], verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes the cause of a SystemError, perhaps of several."""
    verify(SAFE, *COMMAND)
    (saved,) = (tmp_path / "fpsmt-results").glob("verify-*.json")

    def hidden(*_: Any) -> Any:
        inner = SystemError("returned a result with an exception set")
        inner.__cause__ = kind()
        raise SystemError("returned a result with an exception set") from inner

    with pytest.raises(kind), time_limit(60):
        hidden()
    with pytest.raises(SystemError, match="another"), time_limit(60):
        raise SystemError("another")
    monkeypatch.setattr(kernel, "check_verdict", hidden)
    assert main(["check", str(saved)]) == (3 if kind is TimeLimit else 130)  # no failure
