"""What an example registers is forgotten after its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fpsmt.engines
import fpsmt.smt
from fpsmt.claims import PROOFS, SPECS
from fpsmt.engines import ENGINES
from fpsmt.floats import FORMATS
from fpsmt.kernel import RULES
from fpsmt.networks import orders
from fpsmt.smt import processes


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kept: list[tuple[Any, Any]] = [(r, r.copy()) for r in (FORMATS, SPECS, PROOFS, RULES, orders._PLAIN, ENGINES)]
    paths = [(package, list(package.__path__)) for package in (fpsmt.smt, fpsmt.engines)]
    monkeypatch.setattr(processes, "SOLVERS", processes.SOLVERS)
    yield
    for registry, before in kept:
        if isinstance(registry, list):
            registry[:] = before
        else:
            registry.clear()
            registry.update(before)
    for package, path in paths:
        package.__path__[:] = path
