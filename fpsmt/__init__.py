"""fpsmt decides questions about floating-point neural networks as they really run."""

__version__ = "0.1.0"
