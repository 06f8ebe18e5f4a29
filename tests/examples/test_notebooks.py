"""Every notebook of examples/ runs from top to bottom, and shows what is stored in it."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks run with the notebook extra: pip install '.[notebook]'")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def shown(cell: Any) -> list[str]:
    """What a cell prints, one text however many messages it came in, and the first words of what it displays."""
    printed: dict[str, str] = {}
    displayed = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            printed[output.name] = printed.get(output.name, "") + output.text
        else:
            displayed.append(output.get("data", {}).get("text/plain", "").split(":")[0].split("\n")[0])
    return [*printed.values(), *displayed]


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
            assert shown(before) == shown(after)
