"""Formats, rounding contexts, values, and exact arithmetic.  Imports nothing else of the package."""

from fpsmt.floats.exact import (
    add,
    add_products,
    cast,
    div,
    equal,
    fma,
    less,
    less_equal,
    mul,
    nearest,
    round_real,
    sqrt,
    sub,
)
from fpsmt.floats.formats import (
    FORMATS,
    Format,
    bfloat16,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    format_named,
    ieee,
    p3109,
    pow2,
    tfloat32,
)
from fpsmt.floats.rounding import Context, Mode, Overflow, Subnormals, context, nearest_context
from fpsmt.floats.values import (
    Float,
    all_values,
    exactly,
    floor_log2,
    from_ordinal,
    infinity,
    largest,
    nan,
    read_number,
    ulp,
    zero,
)

__all__ = [
    "FORMATS", "Context", "Float", "Format", "Mode", "Overflow", "Subnormals",
    "add", "add_products", "all_values", "bfloat16", "cast", "context", "div", "equal", "exactly", "floor_log2",
    "fma", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float16", "float32", "float64",
    "format_named", "from_ordinal", "ieee", "infinity", "largest", "less", "less_equal", "mul", "nan", "nearest",
    "nearest_context", "p3109", "pow2", "read_number", "round_real", "sqrt", "sub", "tfloat32", "ulp", "zero",
]  # fmt: skip
