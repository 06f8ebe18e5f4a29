"""What options name, as the library's records: contexts, executions, implementations, intervals, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import say
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.floats import Context, Float, Format
    from fpsmt.functions import Implementation
    from fpsmt.networks.executions import Execution

LONG = 40  #: characters of a number that are shown


ActivationOption = Annotated[
    list[str] | None,
    typer.Option("--activation", metavar="OP=CONTRACT", help="What an ONNX operator may return, e.g. Sigmoid=ulps=4."),
]
ExternalOption = Annotated[
    bool, typer.Option("--external-data", help="Allows tensors of an ONNX file in files beside it.")
]
BiasOption = Annotated[
    bool, typer.Option("--bias-from-add", help="Reads MatMul and Add of a constant as one sum with a bias.")
]


@dataclass(frozen=True)
class Source:
    """A model file and how it is read."""

    model: str
    activation: list[str] | None = None
    external: bool = False
    bias_from_add: bool = False

    @property
    def bias_place(self) -> str:
        """Where a bias may be when nothing is said: in ONNX files anywhere."""
        return "any" if self.model.endswith(".onnx") else "last"

    @property
    def implementations(self) -> dict[str, Implementation]:
        """What --activation says, by operator: a contract, of the function ``identity``, which the operator's own
        replaces; or a rational, which takes the place of the operator's function."""
        import fpsmt.rational  # noqa: F401  (functions rational(…) by name)
        from fpsmt.functions import implementation_named

        found = {}
        for text in self.activation or []:
            name, equals, contract = text.partition("=")
            if not equals or not name:
                raise UsageError(f"--activation {text}: write OPERATOR=CONTRACT, such as Sigmoid=ulps=4")
            found[name] = implementation_named(contract if contract.startswith("rational") else "identity:" + contract)
        return found


def read_context(option: str, text: str) -> Context:
    """The format and rounding that an option names."""
    from fpsmt.floats import context

    try:
        return context(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def read_execution(order: str, fma: str, accumulator: str | None, products: str | None, bias: str) -> Execution:
    """The execution that the options name."""
    from fpsmt.networks.executions import execution
    from fpsmt.networks.orders import parse_order

    try:
        family = parse_order(order)
    except UsageError as error:
        raise UsageError(f"--order: {error}") from None
    for option, given in (("--fma", fma), ("--bias-place", bias)):
        known = ("never", "always", "any") if option == "--fma" else ("last", "first", "any")
        if given not in known:
            raise UsageError(f"{option} {given!r}: write one of {', '.join(known)}")
    return execution(
        family,
        fma,
        None if accumulator is None else read_context("--accumulator", accumulator),
        products if products in (None, "exact") else read_context("--products", str(products)),
        bias,
    )


def read_implementation(activation: str, ulps: str | None, format: str) -> tuple[Implementation, Context]:
    """The implementation and the context that the options name."""
    import fpsmt.rational  # noqa: F401  (functions rational(…) by name)
    from fpsmt.floats import read_number
    from fpsmt.functions import CorrectlyRounded, Implementation, WithinUlps, implementation_named

    for option, given in (("--format", format), ("--activation", activation)):
        if not given:
            raise UsageError(f"{option} is needed, e.g. --format bfloat16 --activation sigmoid")
    ctx = read_context("--format", format)
    use = implementation_named(activation)
    if ulps is not None:
        number = read_number(ulps)
        if isinstance(number, float) and number != 0:
            raise UsageError(f"--ulps {ulps}: write a finite number")
        if use.contract != CorrectlyRounded():
            raise UsageError(f"--ulps {ulps}: {activation} has a contract already")
        use = Implementation(use.function, WithinUlps(Fraction(number)), use.single_valued, use.monotone)
    return use, ctx


def read_interval(ctx: Context, domain: str | None) -> tuple[Float, Float]:
    """--domain LO:HI as values of the format; all finite values when it is not given."""
    from fpsmt.floats import exactly, largest, read_number

    fmt = ctx.format
    if domain is None:
        return largest(fmt, True), largest(fmt)
    words = domain.split(":")
    if len(words) != 2:
        raise UsageError(f"--domain {domain}: write LO:HI, e.g. --domain -8:8")
    try:
        low, high = (exactly(fmt, read_number(word)) for word in words)
    except UsageError as error:
        raise UsageError(f"--domain {domain}: {error}") from None
    return low, high


class Reader:
    """Numbers become values of the format; what had to be rounded is counted and told."""

    def __init__(self, fmt: Format, exact: bool) -> None:
        self.format, self.exact = fmt, exact
        self.rounded: list[tuple[str, Float]] = []
        self.more = 0

    def __call__(self, written: str, x: Any, where: str) -> Float:
        from fpsmt.files.arrays import value_of

        value, same = value_of(self.format, written, x)
        if not same:
            if self.exact:
                shown = f"{written:.{LONG}}"
                raise UsageError(f"{where}: {shown} is not a value of {self.format}; the nearest is {value!r}")
            self.rounded.append((written, value))
        return value

    def tell(self) -> None:
        """A note for each number that was rounded; the first three in full."""
        for written, value in self.rounded[:3]:
            written = written if len(written) <= LONG else written[: LONG - 3] + "..."
            say(f"note: {written} is not a value of {self.format}: rounded to nearest, {value.decimal} = {value.hex}")
        more = self.more + max(len(self.rounded) - 3, 0)
        if more:
            say(f"note: {more} more numbers were rounded to nearest; --exact refuses them")
