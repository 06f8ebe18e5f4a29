"""Real functions with certified enclosures, correct rounding, range facts and implementation contracts."""

from fpsmt.functions.function import Function
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
erf = FUNCTIONS["erf"]
sqrt = FUNCTIONS["sqrt"]
sqrt1p_square = FUNCTIONS["sqrt1p_square"]
cosh = FUNCTIONS["cosh"]
gaussian = FUNCTIONS["gaussian"]
