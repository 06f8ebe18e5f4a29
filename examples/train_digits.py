"""Trains the small digits classifier of ``specs/digits.py`` and saves it, with test images, as plain arrays.

    python examples/train_digits.py [--seed N] [--output FOLDER]

Needs the extra ``fpsmt[train]`` (scikit-learn).  The data are scikit-learn's handwritten digits: 1797 images of 8×8
pixels with values 0…16; an input is pixel/16, which every format with five significand bits holds exactly.  A quarter
of the images is kept for testing.  The network is 64 → 32 → 10 with ReLU, its parameters rounded to float32.

Saved in FOLDER (default ``examples/digits``):

* ``digits.npz``: ``weights1`` (32, 64), ``bias1`` (32,), ``weights2`` (10, 32), ``bias2`` (10,) as float32;
  ``pixels`` (40, 64) as uint8; ``labels`` (40,) as uint8; ``places`` (40,), the places of the images in
  scikit-learn's data set.  No pickle.
* ``index.json``: the same list with shapes and types, the seed, the versions used, and the accuracy.

The 40 images: the first 32 of the test set as it was split, and the 8 others of it whose two greatest outputs are
closest to each other in real arithmetic.  The last 8 are the hard ones on purpose; the first 32 are not chosen.

The same seed and library versions give the same file on one machine; another BLAS may differ in the last bits.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent / "digits"
HIDDEN, PLAIN, HARD = 32, 32, 8


def train(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays to save, and what is said about them."""
    try:
        import sklearn
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
        from sklearn.neural_network import MLPClassifier
    except ImportError:
        raise SystemExit("train_digits needs scikit-learn: pip install 'fpsmt[train]'") from None
    digits = load_digits()
    pixels, labels = digits.data.astype(np.uint8), digits.target.astype(np.uint8)
    learn, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=seed, stratify=labels)
    model = MLPClassifier((HIDDEN,), max_iter=2000, alpha=1e-3, random_state=seed)
    model.fit(pixels[learn] / 16.0, labels[learn])
    (w1, w2), (b1, b2) = model.coefs_, model.intercepts_
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(value, dtype=np.float32)
        for name, value in (("weights1", w1.T), ("bias1", b1), ("weights2", w2.T), ("bias2", b2))
    }
    outputs = real_outputs(arrays, pixels[test])
    top = np.sort(outputs, axis=1)
    closest = np.argsort(top[:, -1] - top[:, -2], kind="stable")
    chosen = [*range(PLAIN), *[int(k) for k in closest if k >= PLAIN][:HARD]]
    arrays |= {"pixels": pixels[test[chosen]], "labels": labels[test[chosen]], "places": test[chosen].astype(np.uint16)}
    about = {
        "network": f"64 → {HIDDEN} → 10, ReLU, float32; inputs are pixels / 16",
        "images": f"the first {PLAIN} test images, then the {HARD} others with the smallest margin",
        "accuracy on the test set": float(np.mean(np.argmax(outputs, axis=1) == labels[test])),
        "seed": seed,
        "versions": {"numpy": np.__version__, "scikit-learn": sklearn.__version__},
        "arrays": {name: {"shape": list(a.shape), "type": str(a.dtype)} for name, a in arrays.items()},
    }
    return arrays, about


def real_outputs(arrays: dict[str, Any], pixels: Any) -> Any:
    """The outputs in float64, close to those in real numbers."""
    w1, b1, w2, b2 = (arrays[k].astype(np.float64) for k in ("weights1", "bias1", "weights2", "bias2"))
    return np.maximum(pixels / 16.0 @ w1.T + b1, 0.0) @ w2.T + b2


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the digits classifier and saves it as plain arrays.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args()
    arrays, about = train(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.output / "digits.npz", **arrays)
    (options.output / "index.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{options.output}: accuracy {about['accuracy on the test set']:.4f}, {len(arrays['labels'])} images")


if __name__ == "__main__":
    main()
