"""Running proof scripts: find obligations, discharge them in worker processes, keep every verdict as it comes.

Workers are processes so that they can be stopped at any moment: on Ctrl-C they are told, then killed, and what was
already decided is kept.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fpsmt.claims.specs import PROOFS, SPECS, Obligation
from fpsmt.engines import Options, decide
from fpsmt.errors import FpsmtError, UsageError
from fpsmt.floats.vector import load_kernels
from fpsmt.kernel import is_sealed, verdict_to_json

KERNELS_PAY = 4  #: with more obligations, the compiled kernels are loaded once for all workers

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Result:
    """What became of one obligation: the stored form of its verdict, or the error that stopped it."""

    obligation: Obligation
    record: dict[str, Any]
    seconds: float

    @property
    def verdict(self) -> str:
        return str(self.record["verdict"])

    @property
    def how(self) -> str:
        return str(self.record.get("how", ""))

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.obligation.case.expected


def proofs_folder() -> Path:
    """``proofs/`` of the working directory, else the one beside the package."""
    for base in (Path.cwd(), ROOT):
        if (base / "proofs").is_dir() and (base / "specs").is_dir():
            return base / "proofs"
    raise UsageError("no proofs/ with specs/ beside it: run from the project's folder, or name a proof script")


def _modules(path: Path) -> Iterator[str]:
    """Module names of the proof scripts under a path, with their root on the import path."""
    path = path.resolve()
    if not path.exists():
        raise UsageError(f"{path}: no such proof script or folder")
    base = path
    while base.name != "proofs":
        if base.parent == base:
            raise UsageError(f"{path} is not inside a folder named proofs")
        base = base.parent
    root = str(base.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files:
        if file.name != "__init__.py":
            yield ".".join(file.relative_to(base.parent).with_suffix("").parts)


def load(targets: Sequence[str], everything: bool = False) -> list[Obligation]:
    """The obligations named by paths or spec ids; all scripts when nothing is named.

    Without `everything` a spec's long cases are left out, unless the spec is named by its id.
    """
    paths = [t for t in targets if t.endswith(".py") or "/" in t or Path(t).is_dir()]
    ids = [t for t in targets if t not in paths]
    modules = [m for path in paths for m in _modules(Path(path))]
    wanted = set(modules)
    if len(paths) < len(targets) or not targets:
        modules += _modules(proofs_folder())
    for module in modules:
        importlib.import_module(module)
    unknown = [i for i in ids if i not in SPECS]
    if unknown:
        raise UsageError(f"unknown spec {unknown[0]!r}: the specs are {', '.join(sorted(SPECS))}")
    module_of = {id: script.__module__ for id, script in PROOFS.items()}
    chosen = [id for id, module in module_of.items() if not targets or module in wanted or id in ids]
    chosen += [id for id in ids if id not in chosen]
    return [
        Obligation(SPECS[id], case, module_of.get(id, ""))
        for id in chosen
        for case in SPECS[id].cases
        if case.quick or everything or id in ids
    ]


def discharge(obligation: Obligation, options: Options) -> dict[str, Any]:
    """The stored form of the verdict of one obligation, decided in this process."""
    claim = obligation.spec.claim(obligation.case)
    script = PROOFS.get(obligation.spec.id)
    if script is None:
        verdict = decide(claim, options)
    else:
        verdict = script(claim, options, **obligation.case.arguments)
    if not is_sealed(verdict):
        kind = type(verdict).__name__
        raise UsageError(f"the script of {obligation.spec.id} returns a {kind} that was not made by the kernel")
    if verdict.claim != claim:
        raise UsageError(f"the script of {obligation.spec.id} proves another claim: {verdict.claim.text}")
    return verdict_to_json(verdict)


def _work(pipe: Connection, obligation_key: tuple[str, str, str], options: Options) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setpgid(0, 0)
    module, id, case_name = obligation_key
    try:
        if module:
            importlib.import_module(module)
        spec = SPECS[id]
        case = next(c for c in spec.cases if c.name == case_name)
        pipe.send(discharge(Obligation(spec, case, module), options))
    except FpsmtError as error:
        pipe.send({"verdict": "unknown", "reason": f"{type(error).__name__}: {error}", "how": "error", "error": True})
    except Exception:
        reason = traceback.format_exc(limit=-3)
        pipe.send({"verdict": "unknown", "reason": reason, "how": "internal error", "error": True})


class _Worker:
    """One process with one obligation; it dies with the time limit."""

    def __init__(self, obligation: Obligation, options: Options) -> None:
        self.obligation, self.start, self.limit = obligation, time.monotonic(), options.timeout
        self.pipe, child = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        key = (obligation.module, obligation.spec.id, obligation.case.name)
        self.process = context.Process(target=_work, args=(child, key, options), daemon=False)
        self.process.start()
        child.close()

    @property
    def late(self) -> bool:
        return time.monotonic() - self.start > self.limit * 1.5 + 30

    def result(self, reason: str = "") -> Result:
        """The answer in the pipe, or why there is none."""
        record: dict[str, Any] = {"verdict": "unknown", "reason": reason, "how": "stopped"}
        if not reason:
            try:
                record = self.pipe.recv()
            except EOFError:
                self.process.join(1)
                record["reason"] = f"the worker died (exit code {self.process.exitcode}): out of memory, or killed"
        self.kill()
        return Result(self.obligation, record, time.monotonic() - self.start)

    def kill(self) -> None:
        """Ends the process and whatever it started."""
        if self.process.pid is not None and self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
        self.process.join(1)
        self.pipe.close()


def run(
    obligations: Sequence[Obligation],
    options: Options,
    on_result: Callable[[Result], None],
    on_tick: Callable[[list[Obligation]], None] = lambda running: None,
) -> None:
    """Discharges the obligations, `options.jobs` at a time; `on_result` hears of each as it ends.

    On KeyboardInterrupt everything running is killed before the interrupt goes on.
    """
    waiting = list(obligations)
    running: list[_Worker] = []
    if len(waiting) > KERNELS_PAY:
        load_kernels()
    single = Options(options.timeout, options.memory_mb, options.solvers, 1 if options.jobs > 1 else 2, options.seed)
    try:
        while waiting or running:
            while waiting and len(running) < max(1, options.jobs):
                running.append(_Worker(waiting.pop(0), single))
            ready = wait([worker.pipe for worker in running], timeout=0.5)
            for worker in list(running):
                if worker.pipe in ready or worker.late:
                    running.remove(worker)
                    on_result(worker.result("" if worker.pipe in ready else "the time limit was passed"))
            on_tick([worker.obligation for worker in running])
    finally:
        for worker in running:
            worker.kill()
