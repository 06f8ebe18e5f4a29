"""Published float programs of activations, by name: data.  The text is explained in `program_text`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A program, the real function that it is meant for (empty when there is none here), and where it is found."""

    name: str
    body: str
    function: str
    source: str


#: r(x) = x·P(x²)/Q(x²): coefficients α₁ … α₁₃ and β₀ … β₆ of the 13/6 rational tanh that several libraries share.
_RATIONAL = (
    "z = y*y; "
    "p = -2.76076847742355e-16; p = p*z + 2.00018790482477e-13; p = p*z + -8.60467152213735e-11; "
    "p = p*z + 5.12229709037114e-08; p = p*z + 1.48572235717979e-05; p = p*z + 6.37261928875436e-04; "
    "p = p*z + 4.89352455891786e-03; "
    "q = 1.19825839466702e-06; q = q*z + 1.18534705686654e-04; q = q*z + 2.26843463243900e-03; "
    "q = q*z + 4.89352518554385e-03; "
    "y*p/q"
)

_SOFTPLUS = "log1p(exp(-abs(x)))"
_SELU = "1.0507009873554804934193349852946*(x if x > 0 else 1.6732632423543772848170429916717*"
_HALF_ROOT = "0.70710678118654752440"

_ENTRIES = (
    ("sigmoid", "1/(1 + exp(-x))", "sigmoid", "the definition"),
    ("sigmoid_stable", "e = exp(-abs(x)); 1/(1 + e) if x >= 0 else e/(1 + e)", "sigmoid", "two branches"),
    ("sigmoid_tanh", "0.5*tanh(0.5*x) + 0.5", "sigmoid", "by tanh (Eigen, XLA)"),
    ("swish", "x/(1 + exp(-x))", "swish", "one division (PyTorch's silu)"),
    ("silu", "x*(1/(1 + exp(-x)))", "swish", "x times sigmoid (onnxruntime, TensorFlow)"),
    ("gelu_erf", f"0.5*x*(1 + erf(x*{_HALF_ROOT}))", "gelu", "PyTorch, onnxruntime"),
    ("gelu_erfc", f"0.5*x*erfc(-x*{_HALF_ROOT})", "gelu", "by erfc"),
    (
        "gelu_tanh",
        "0.5*x*(1 + tanh(0.79788456080286535588*(x + 0.044715*x*x*x)))",
        "gelu_tanh",
        "Hendrycks and Gimpel 2016",
    ),
    ("mish", "s = x if x > 20 else log1p(exp(x)); x*tanh(s)", "mish", "softplus with threshold 20, then tanh"),
    ("mish_rational", "e = exp(x); n = e*(e + 2); x if x > 20 else x*(n/(n + 2))", "mish", "one exponential"),
    ("softplus_log", "log(1 + exp(x))", "softplus", "the definition"),
    ("softplus", "x if x > 20 else log1p(exp(x))", "softplus", "threshold 20 (PyTorch)"),
    ("softplus_stable", f"(x if x > 0 else 0) + {_SOFTPLUS}", "softplus", "max(x, 0) + log1p(exp(-|x|))"),
    (
        "softplus_thresholds",
        "x if x > 13.942385 else exp(x) if x < -13.942385 else log1p(exp(x))",
        "softplus",
        "two thresholds, 2 + log(eps) of float32 (TensorFlow)",
    ),
    ("elu", "x if x > 0 else expm1(x)", "elu", "by expm1"),
    ("elu_exp", "x if x > 0 else exp(x) - 1", "elu", "by exp - 1"),
    ("selu", _SELU + "expm1(x))", "selu", "by expm1"),
    ("selu_exp", _SELU + "(exp(x) - 1))", "selu", "by exp - 1"),
    ("tanh_exp", "e = exp(-2*x); (1 - e)/(1 + e)", "tanh", "the definition"),
    (
        "tanh_exp_stable",
        "e = exp(-2*abs(x)); t = (1 - e)/(1 + e); t if x >= 0 else -t",
        "tanh",
        "no overflow",
    ),
    ("tanh_sigmoid", "2/(1 + exp(-2*x)) - 1", "tanh", "by the logistic function"),
    (
        "tanh_rational",
        f"y = clamp(x, -9, 9); {_RATIONAL}",
        "tanh",
        "13/6 rational, clamped at 9 (Eigen, MLAS, XLA, ncnn); tensorflow#23054",
    ),
    (
        "tanh_rational_clamped",
        f"y = clamp(x, -7.90531110763549805, 7.90531110763549805); {_RATIONAL}",
        "tanh",
        "the same, clamped at 7.905",
    ),
    ("logsigmoid_log", "-log1p(exp(-x))", "logsigmoid", "the definition"),
    ("logsigmoid", f"(x if x < 0 else 0) - {_SOFTPLUS}", "logsigmoid", "min(x, 0) - log1p(exp(-|x|)) (PyTorch)"),
    (
        "erf_abramowitz_stegun",
        "a = abs(x); t = 1/(1 + 0.3275911*a); "
        "p = ((((1.061405429*t + -1.453152027)*t + 1.421413741)*t + -0.284496736)*t + 0.254829592)*t; "
        "y = 1 - p*exp(-(a*a)); y if x >= 0 else -y",
        "erf",
        "Abramowitz and Stegun 1964, 7.1.26",
    ),
    ("expm1_exp", "exp(x) - 1", "expm1", "the definition"),
    ("log1p_log", "log(1 + x)", "log1p", "the definition"),
    ("log1p_corrected", "u = 1 + x; x if u == 1 else log(u)*(x/(u - 1))", "log1p", "Kahan"),
    ("gaussian", "exp(-(x*x))", "gaussian", "the definition"),
    ("relu_select", "x if x > 0 else 0", "relu", "NaN becomes 0"),
    ("relu_propagate", "0 if x < 0 else x", "relu", "NaN stays NaN, -0 stays -0"),
    (
        "relu6_difference",
        "y = x - 6; (x if x > 0 else 0) - (y if y > 0 else 0)",
        "",
        "relu(x) - relu(x - 6); tinygrad#18028",
    ),
    ("relu6", "clamp(x, 0, 6)", "", "min(max(x, 0), 6)"),
)  # fmt: skip

#: Every published program, by name.
LIBRARY: dict[str, Entry] = {entry[0]: Entry(*entry) for entry in _ENTRIES}
