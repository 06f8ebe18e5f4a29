"""Every notebook of examples/ runs from top to bottom, and shows what is stored in it."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks run with the notebook extra: pip install '.[notebook]'")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def plain(cell: Any) -> list[str]:
    """The plain texts a cell shows, without timings."""
    outputs = cell.get("outputs", [])
    return [o.get("data", {}).get("text/plain", o.get("text", "")) for o in outputs]


def first_words(texts: list[str]) -> list[str]:
    return [text.split(":")[0].split("\n")[0] for text in texts]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_notebook_runs(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": EXAMPLES}}
    nbclient.NotebookClient(fresh, timeout=240, kernel_name="python3", resources=folder).execute()
    for before, after in zip(stored.cells, fresh.cells, strict=True):
        if before.cell_type == "code":
            assert before.outputs, "the notebook is stored with its outputs"
            assert first_words(plain(before)) == first_words(plain(after))
