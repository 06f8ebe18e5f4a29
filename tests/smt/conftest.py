"""Solvers that misbehave."""

import textwrap

import pytest

from fpsmt.smt import processes, solving

HEADER = """
import os, signal, sys, time
NAME = PACKAGE = MODULE = "json"
def decline(sorts):
    return None
def version():
    return "0"
def run(text, shown):
"""


@pytest.fixture
def fake_solver(tmp_path, monkeypatch):
    """fake_solver(name, body of run): a solver file that behaves like this; the real ones stay known."""
    import importlib.util

    real, names = processes.solver, {}

    def known(name):
        return names[name] if name in names else real(name)

    def make(name, body):
        path = tmp_path / f"{name}.py"
        path.write_text(HEADER + textwrap.indent(textwrap.dedent(body), "    "))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names[name] = module
        monkeypatch.setattr(processes, "solver", known)
        monkeypatch.setattr(solving, "solver", known)
        return name

    return make


@pytest.fixture
def lying_solver(fake_solver):
    return fake_solver("liar", "return 'sat', {symbol: 0 for symbol in shown}, ''")
