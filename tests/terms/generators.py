"""Hypothesis generators of terms and of values for their variables."""

from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import UsageError
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Overflow,
    Subnormals,
    bfloat16,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float16,
    float32,
    ieee,
    p3109,
)
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort

FORMATS = [
    ieee(2, 3), ieee(3, 3), p3109(6, 3), float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float16, bfloat16, float32,
]  # fmt: skip


def _contexts():
    for i, fmt in enumerate(FORMATS):
        for j, mode in enumerate(Mode):
            overflow = list(Overflow)[(i + j) % 3]
            subnormals = list(Subnormals)[(i * 2 + j) % 4]
            try:
                yield Context(fmt, mode, overflow, subnormals)
            except UsageError:
                yield Context(fmt, mode, Overflow.SATURATE, subnormals)


CONTEXTS = list(_contexts())


@st.composite
def conditions(draw, contexts=None, operations=8):
    """A Boolean term over a few floats, bits, choices and Booleans."""
    contexts = CONTEXTS if contexts is None else contexts
    floats = [t.var(f"x{i}", draw(st.sampled_from(contexts)).format) for i in range(draw(st.integers(1, 3)))]
    choice = t.var("choice", ChoiceSort(draw(st.integers(2, 5))))
    bools = [t.var("p", BOOL)]
    fmt = floats[0].format
    word = t.var("word", BitsSort(fmt.bits))
    bits = [word, t.bits(fmt.bits, draw(st.integers(0, (1 << fmt.bits) - 1)))]
    for _ in range(draw(st.integers(1, operations))):
        _step(draw, contexts, floats, bits, bools, choice)
    return t.any_of(bools[-1], t.all_of(*draw(st.lists(st.sampled_from(bools), min_size=1, max_size=3))))


def _step(draw, contexts, floats, bits, bools, choice):
    a, b, c, d = (draw(st.sampled_from(floats)) for _ in range(4))
    ctx = draw(st.sampled_from(contexts))
    kind = draw(st.integers(0, 9))
    if kind <= 3:
        makers = [
            lambda: t.add(ctx, a, b),
            lambda: t.sub(ctx, a, b),
            lambda: t.mul(ctx, a, b),
            lambda: t.fma(ctx, a, b, c),
            lambda: t.add_products(ctx, a, b, c, d),
            lambda: t.div(ctx, a, b),
            lambda: t.sqrt(ctx, a),
            lambda: t.cast(ctx, a),
        ]
        floats.append(draw(st.sampled_from(makers))())
    elif kind == 4:
        floats.append(draw(st.sampled_from([t.neg, t.absolute, t.relu]))(a))
    elif kind == 5:
        p, q = draw(st.sampled_from(bits)), draw(st.sampled_from(bits))
        bits.append(draw(st.sampled_from([t.bits_add, t.bits_sub, t.bits_and, t.shift_left]))(p, q))
        bits.append(t.concat(t.extract(bits[-1], 1, 0), t.extract(p, p.sort.width - 1, 2)))
        bools.append(t.bits_less(p, q))
        floats.append(t.from_bits(floats[0].format, bits[-1]))
    elif kind == 6:
        same = [x for x in floats if x.sort == a.sort]
        options = [draw(st.sampled_from(same)) for _ in range(choice.sort.size)]
        floats.append(t.choose(choice, options))
        bools.append(t.choice_is(choice, draw(st.integers(0, choice.sort.size - 1))))
    elif kind == 7:
        same = [x for x in floats if x.sort == a.sort]
        floats.append(t.ite(draw(st.sampled_from(bools)), a, draw(st.sampled_from(same))))
    elif kind == 8:
        test = draw(st.sampled_from([t.is_nan, t.is_infinite, t.is_finite, t.is_zero, t.is_negative]))
        bools.append(t.negation(test(a)))
    same = [x for x in floats if x.sort == floats[-1].sort]
    compare = draw(st.sampled_from([t.same, t.eq, t.lt, t.le]))
    bools.append(compare(draw(st.sampled_from(same)), floats[-1]))


def random_values(root, rng):
    """Values for the variables, special floats often."""
    values = {}
    for v in t.variables(root):
        if isinstance(v.sort, FloatSort):
            values[v.data] = random_float(v.sort.format, rng)
        elif isinstance(v.sort, BitsSort):
            values[v.data] = rng.getrandbits(v.sort.width)
        elif isinstance(v.sort, ChoiceSort):
            values[v.data] = rng.randrange(v.sort.size)
        else:
            values[v.data] = rng.random() < 0.5
    return values


def random_float(fmt, rng):
    """Any code, or a code near a zero, a power of two, the largest value or infinity."""
    kind = rng.randrange(4)
    code = rng.getrandbits(fmt.bits)
    if kind == 0:
        code &= ~((1 << fmt.fraction_bits) - 1)
    elif kind == 1:
        code = rng.randrange(3) | (code & fmt.sign_mask)
    elif kind == 2:
        code = max(0, fmt.largest_code + fmt.has_infinity - rng.randrange(3)) | (code & fmt.sign_mask)
    return Float(fmt, code)
