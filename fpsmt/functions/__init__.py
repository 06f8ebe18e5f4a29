"""Real functions with certified enclosures, correct rounding, range facts and implementation contracts."""

from fpsmt.functions.allowed import allowed_arrays, allowed_tables, as_table, only_table, tabulated
from fpsmt.functions.arrays import correctly_rounded_array, table
from fpsmt.functions.enclosures import constant_on, enclose, range_on
from fpsmt.functions.function import Function
from fpsmt.functions.implementation_text import implementation_from_json, implementation_named
from fpsmt.functions.implementations import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Implementation,
    Piece,
    Piecewise,
    Table,
    WithinError,
    WithinFloats,
    WithinUlps,
)
from fpsmt.functions.registry import FUNCTIONS, function_named
from fpsmt.functions.rounding import correctly_rounded

identity = FUNCTIONS["identity"]
step = FUNCTIONS["step"]
relu = FUNCTIONS["relu"]
leaky_relu = FUNCTIONS["leaky_relu"]
elu = FUNCTIONS["elu"]
selu = FUNCTIONS["selu"]
celu = FUNCTIONS["celu"]
sigmoid = FUNCTIONS["sigmoid"]
logsigmoid = FUNCTIONS["logsigmoid"]
tanh = FUNCTIONS["tanh"]
softplus = FUNCTIONS["softplus"]
gelu = FUNCTIONS["gelu"]
gelu_tanh = FUNCTIONS["gelu_tanh"]
swish = FUNCTIONS["swish"]
mish = FUNCTIONS["mish"]
sin = FUNCTIONS["sin"]
cos = FUNCTIONS["cos"]
exp = FUNCTIONS["exp"]
log = FUNCTIONS["log"]
expm1 = FUNCTIONS["expm1"]
log1p = FUNCTIONS["log1p"]
erf = FUNCTIONS["erf"]
erfc = FUNCTIONS["erfc"]
sqrt = FUNCTIONS["sqrt"]
sqrt1p_square = FUNCTIONS["sqrt1p_square"]
cosh = FUNCTIONS["cosh"]
gaussian = FUNCTIONS["gaussian"]

__all__ = [
    "FUNCTIONS", "Clamped", "Contract", "CorrectlyRounded", "Function", "Implementation", "Piece", "Piecewise",
    "Table", "WithinError", "WithinFloats", "WithinUlps",
    "allowed_arrays", "allowed_tables", "as_table", "constant_on", "correctly_rounded", "correctly_rounded_array",
    "enclose", "function_named", "implementation_from_json", "implementation_named", "only_table",
    "range_on", "table", "tabulated",
    "celu", "cos", "cosh", "elu", "erf", "erfc", "exp", "expm1", "gaussian", "gelu", "gelu_tanh", "identity",
    "leaky_relu", "log", "log1p", "logsigmoid", "mish", "relu", "selu", "sigmoid", "sin", "softplus", "sqrt",
    "sqrt1p_square", "step", "swish", "tanh",
]  # fmt: skip
