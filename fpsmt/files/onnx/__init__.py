"""Networks from ONNX files."""

from fpsmt.files.onnx.reading import MAX_OPSET, MIN_OPSET, Model, Port, operators, read_onnx
from fpsmt.files.onnx.tensors import TYPE_NAMES

__all__ = ["MAX_OPSET", "MIN_OPSET", "TYPE_NAMES", "Model", "Port", "operators", "read_onnx"]
