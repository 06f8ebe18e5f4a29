"""The child process of one solver run: ``python -P worker.py SOLVER_FILE QUERY_FILE PARENT MEMORY_MB``.

It loads the solver's file, asks it about the query, and prints one JSON object with `status`, `values`
(symbol → integer as text), `version` and `reason`.  It dies with its parent and obeys the memory limit.
Nothing of the package is imported, so that it starts fast and a broken solver harms nobody else.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import resource
import signal
import sys


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends (Linux; elsewhere the parent does it)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def main(arguments: list[str]) -> None:
    solver_file, query_file, parent, memory_mb = arguments
    die_with(int(parent))
    limit = int(memory_mb) << 20
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    spec = importlib.util.spec_from_file_location("solver", solver_file)
    assert spec is not None and spec.loader is not None
    solver = importlib.util.module_from_spec(spec)
    with open(query_file, encoding="utf-8") as stream:
        query = json.load(stream)
    try:
        spec.loader.exec_module(solver)
        status, values, reason = solver.run(query["text"], query["shown"])
        answer = {"status": status, "values": {k: str(v) for k, v in values.items()}, "reason": reason}
        answer["version"] = solver.version()
    except MemoryError:
        answer = {"status": "unknown", "values": {}, "version": "", "reason": f"needs more than {memory_mb} MB"}
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if "memory" in text or "bad_alloc" in text:
            text = f"needs more than {memory_mb} MB ({text})"
        answer = {"status": "unknown", "values": {}, "version": "", "reason": text}
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)  # no destructors: solvers have crashed in theirs


if __name__ == "__main__":
    main(sys.argv[1:])
