"""The shipped classifier and the specs about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import PROOFS, SPECS, PredictionInvariant
from fpsmt.engines import Options, decide
from fpsmt.errors import UsageError
from fpsmt.networks import run_batch
from proofs import digits as _proofs
from specs import digits

assert _proofs.__doc__


@pytest.mark.parametrize("id", ["digits-float32", "digits-bfloat16", "digits-bfloat16-wide-sums"])
def test_specs_get_the_verdicts_they_expect(id: str) -> None:
    spec = SPECS[id]
    for case in spec.cases:
        verdict = PROOFS[id](spec.claim(case), Options(), **case.arguments)
        assert verdict.name == case.expected, f"{id} [{case.name}]: {verdict}"


def test_which_images_break_in_bfloat16() -> None:
    """The eight hard ones, and one of those that were not chosen, as the spec says."""
    whole = digits.claim("bfloat16", "any")
    for k in (12, *range(32, 40)):
        verdict = decide(PredictionInvariant(whole.network, (whole.inputs[k],), whole.executions))
        assert verdict.name == "refuted", f"image {k}: {verdict}"


def test_the_classifier_works() -> None:
    made = digits.claim("float32", "any")
    with np.load(digits.ARRAYS, allow_pickle=False) as file:
        pixels, labels = file["pixels"], file["labels"]
    outputs = run_batch(made.network, pixels / 16.0)[made.network.output.name]
    assert (np.argmax(outputs, axis=1) == labels)[:32].mean() > 0.9
    assert len(made.inputs) == 40 and len(set(made.inputs)) == 40


def test_a_missing_or_wrong_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is missing: restore it, or run python examples/train_digits\.py"):
        digits.load(tmp_path / "digits.npz")
    np.savez(tmp_path / "other.npz", weights1=np.zeros((32, 64)))
    with pytest.raises(UsageError, match="not the file that"):
        digits.load(tmp_path / "other.npz")
    with np.load(digits.ARRAYS) as file:
        arrays = dict(file)
    np.savez(tmp_path / "shape.npz", **(arrays | {"bias1": np.zeros(3, dtype=np.float32)}))
    with pytest.raises(UsageError, match="bias1 has shape"):
        digits.load(tmp_path / "shape.npz")
    (tmp_path / "text.npz").write_text("no array")
    with pytest.raises(UsageError, match="not the file that"):
        digits.load(tmp_path / "text.npz")
