"""What holds of the source as a whole: who imports whom, sizes, and what is never used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fpsmt.floats import FORMATS

ROOT = Path(__file__).resolve().parent.parent

#: Layers of the package, lowest first: each imports from lower ones and from itself (docs/architecture.md).
LAYERS = (
    {"errors"},
    {"floats"},
    {"functions"},
    {"networks", "terms", "rational"},
    {"smt", "constructions"},
    {"claims"},
    {"kernel"},
    {"engines"},
    {"files", "display", "proving"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
TRUSTED = ("floats", "functions", "networks", "terms", "rational", "smt", "constructions", "claims", "kernel")
MOST_LINES = 600


@cache
def sources(*folders: str) -> tuple[Path, ...]:
    found = tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    assert found
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[str]:
    """Full names of what a module imports, wherever the import stands."""
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{package} uses a relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def parts(path: Path) -> set[str]:
    """The packages of ours that a module imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("fpsmt.")} & LEVEL.keys()


def own(path: Path) -> str:
    return path.relative_to(ROOT / "fpsmt").with_suffix("").parts[0]


def test_every_package_has_its_layer() -> None:
    found = {own(path) for path in sources("fpsmt")} - {"__init__"}
    assert found <= LEVEL.keys(), f"say in docs/architecture.md and here what {found - LEVEL.keys()} may import"


@pytest.mark.parametrize("path", sources("fpsmt"), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    package = own(path)
    if package == "__init__":
        return
    above = {other for other in parts(path) if other != package and LEVEL[other] >= LEVEL[package]}
    assert not above, f"{package} is below {', '.join(sorted(above))}"


def test_the_foundations_import_nothing_of_ours() -> None:
    for path in sources("fpsmt/floats"):
        assert parts(path) <= {"floats", "errors"}, path
    for path in sources("fpsmt/kernel"):
        assert not parts(path) & {"engines", "files", "display", "commands", "proving"}, path


def test_specs_use_no_tactics() -> None:
    """A reader of specs/ needs to trust claims, terms and constructions; nothing there decides anything."""
    for path in sources("specs"):
        used = parts(path)
        if "smt" in used:  # networks as formulas; no solver
            assert all(n.startswith("fpsmt.smt.unrolling.") for n in imports(path) if n.startswith("fpsmt.smt")), path
            used = used - {"smt"}
        meant = {"claims", "constructions", "errors", "floats", "functions", "networks", "rational", "terms"}
        assert used <= meant, path
        others = {name.split(".")[0] for name in imports(path)} - {"fpsmt", "__future__"}
        assert others <= {"fractions", "dataclasses", "numpy", "pathlib", "typing", "zipfile", "collections"}, path
        assert "proofs" not in others


@pytest.mark.parametrize("path", sources("fpsmt", "specs", "proofs", "tests"), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "input"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def test_nothing_runs_or_unpickles_data() -> None:
    for path in sources("fpsmt", "specs", "proofs"):
        assert not {name.split(".")[0] for name in imports(path)} & FORBIDDEN_MODULES, path
        for name, call in calls(path):
            assert name not in FORBIDDEN_CALLS, f"{path}:{call.lineno} calls {name}"
            options = {k.arg: ast.unparse(k.value) for k in call.keywords}
            assert options.get("shell", "False") == "False", f"{path}:{call.lineno} starts a shell"
            if name.endswith((".load", ".fromfile")) and name.startswith(("np.", "numpy.")):
                assert options.get("allow_pickle") == "False", f"{path}:{call.lineno} may load a pickle"


def test_no_tolerances_in_trusted_code() -> None:
    for path in sources(*(f"fpsmt/{name}" for name in TRUSTED)):
        for name, call in calls(path):
            word = name.rsplit(".", 1)[-1]
            assert word not in {"isclose", "allclose", "approx"}, f"{path}:{call.lineno} compares with a tolerance"


def compared(path: Path) -> Iterator[tuple[int, list[ast.expr]]]:
    """What stands in comparisons and in the patterns of match statements."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Compare):
            yield node.lineno, [node.left, *node.comparators]
        elif isinstance(node, ast.match_case):
            patterns = [p for p in ast.walk(node.pattern) if isinstance(p, ast.MatchValue)]
            yield node.pattern.lineno, [p.value for p in patterns]


def test_nothing_branches_on_the_name_of_a_format() -> None:
    for path in sources("fpsmt"):
        for line, operands in compared(path):
            if any("dtype" in ast.unparse(x) for x in operands):
                continue  # numpy's and torch's types, not ours
            words = {n.value for x in operands for n in ast.walk(x) if isinstance(n, ast.Constant)}
            assert not words & FORMATS.keys(), f"{path}:{line} compares with the name of a format"
            if own(path) in TRUSTED:
                named = [x for x in operands if re.fullmatch(r"(.*[._])?(fmt|format)\w*\.name", ast.unparse(x))]
                assert not named, f"{path}:{line} looks at the name of a format"


def test_only_the_kernel_makes_verdicts() -> None:
    for path in sources("fpsmt", "specs", "proofs"):
        inside = path.parent == ROOT / "fpsmt" / "kernel"
        assert inside or not any("_SEAL" in name for name in imports(path)), path
        for name, call in calls(path):
            made = name.rsplit(".", 1)[-1]
            assert inside or made not in {"Proved", "Refuted"}, f"{path}:{call.lineno} makes a verdict"


def test_errors_are_raised_by_their_classes() -> None:
    """Nothing that a user can reach raises a bare Exception or asserts on input in the command line."""
    for path in sources("fpsmt"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Raise) and node.exc is not None:
                name = ast.unparse(node.exc).partition("(")[0]
                assert name not in {"Exception", "BaseException", "RuntimeError"}, f"{path}:{node.lineno}"
