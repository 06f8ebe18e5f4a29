"""Normalisation before a rational activation: its affine map is absorbed by the coefficients, or it is not."""

from __future__ import annotations

from fpsmt.claims import Absorbed, Case, Identity, cases, spec
from fpsmt.rational.affine import Map, parameters, shifted_parameters, unsafe_text

SOURCE = "rational activations (2026): normalisation"
TYPES = [(1, 1), (2, 2), (3, 2), (5, 4)]


@spec(
    "affine-input-absorbed",
    source=SOURCE,
    cases=[
        *cases(version=["unsafe"], type=[*TYPES, (4, 5), (7, 6)]),
        *cases(version=["A", "B"], type=[(3, 0)]),
        *[Case({"version": v, "type": t}, "refuted") for v in ("A", "B") for t in [(0, 1), *TYPES]],
    ],
)
def affine_input_absorbed(version: str, type: tuple[int, int]) -> Absorbed:
    """γ and θ of a normalisation layer are absorbed by P/Q exactly; forms A and B do not absorb θ: kinks would move."""
    return Absorbed(version, type)


@spec("scale-absorbed", source=SOURCE, cases=cases(version=["unsafe", "A", "B"], type=TYPES))
def scale_absorbed(version: str, type: tuple[int, int]) -> Absorbed:
    """A factor γ alone is absorbed by every form."""
    map: Map = "scale"
    return Absorbed(version, type, map)


@spec("two-dimensional-orbit", source=SOURCE, cases=cases(type=[(1, 1), (3, 2), (5, 4)]))
def two_dimensional_orbit(type: tuple[int, int]) -> Identity:
    """(γ, θ, a, b) and (γ′, θ′, a′, b′) are one function for every γ′ ≠ 0 and θ′: two directions are flat.

    a′ and b′ are those of the input (γ/γ′)·x + θ − θ′γ/γ′; distinct (γ′, θ′) are distinct parameters.
    """
    a, b = parameters(type)
    changed = shifted_parameters(type, "g/h", "t - s*g/h")
    left, right = unsafe_text(a, b, "g*u + t"), unsafe_text(*changed, "h*u + s")
    return Identity(left, right, f"r(gu + t; a, b) = r(hu + s; a′, b′), type {type}")
