"""The drawing of a `SpreadView`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fpsmt.display.outline import fraction_text
from fpsmt.display.tables import cut

if TYPE_CHECKING:
    from fractions import Fraction

    from fpsmt.display.spread import Mark, SpreadView
    from fpsmt.floats import Float

_LEFT, _WIDE, _RIGHT = 180, 430, 250  # names, the line, values
MOST_TEXT = 120  #: characters of the sum's text
_BINS, _HIGH, _ROW = 48, 56, 22
_LINE, _THIN, _REAL, _DOT, _BAR = "#0969da", "#8c959f", "#cf222e", "#8250df", "#afb8c1"


def draw(view: SpreadView) -> str:
    """See `SpreadView.svg`."""
    span = view.span
    body = [_text(8, 16, view.heading, bold=True), _text(8, 32, cut(view.text, MOST_TEXT))]
    y = 44
    if view.sample:
        body += _histogram(view, span, y)
        y += _HIGH
    y += 12
    body += _axis(view, span, y)
    body += [_text(8, y + 4, "results")]
    bottom = y + _ROW * (len(view.marks) + (view.exact is not None)) + 8
    if view.exact is not None:
        y += _ROW
        at = _x(view.place(view.exact, span))
        text = fraction_text(view.exact)
        body.append(
            f'<g class="exact"><title>exact real sum {escape(text)}</title>'
            f'<line x1="{at:.1f}" y1="44" x2="{at:.1f}" y2="{bottom}" stroke="{_REAL}" stroke-dasharray="3 2"/></g>'
        )
        body += [_text(8, y + 4, "exact real sum", _REAL), _text(_LEFT + _WIDE + 16, y + 4, text, _REAL)]
    for mark in view.marks:
        y += _ROW
        body += _mark(view, mark, span, y)
    y += _ROW + 4
    if any(not mark.allowed for mark in view.marks):
        body.append(_text(8, y, "hollow: not among the allowed schedules", "#57606a"))
        y += 16
    width = max(_LEFT + _WIDE + _RIGHT, 7 * len(view.heading) + 16)
    title = escape(view.heading)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y}" width="{width:.0f}" height="{y}" '
        f'role="img" style="max-width:100%;height:auto" font-family="monospace" font-size="11">'
        f"<title>{title}</title>{''.join(body)}</svg>"
    )


def _x(place: float | None) -> float:
    return _LEFT + _WIDE * (place or 0.0)


def _text(x: float, y: float, text: str, colour: str = "currentColor", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}"{weight}>{escape(text)}</text>'


def _tip(value: Float) -> str:
    return f"<title>{escape(f'{value!r} {value.bit_string}')}</title>"


def _histogram(view: SpreadView, span: tuple[Fraction, Fraction], y: float) -> list[str]:
    counts = view.bars(span, _BINS)
    most, wide = max(max(counts), 1), _WIDE / _BINS
    bars = [
        f'<rect x="{_LEFT + k * wide:.1f}" y="{y + _HIGH * (1 - count / most):.1f}" width="{wide - 1:.1f}" '
        f'height="{_HIGH * count / most:.1f}" fill="{_BAR}"><title>{count} of {len(view.sample)} random schedules'
        "</title></rect>"
        for k, count in enumerate(counts)
        if count
    ]
    words = view.sample_label.split(": ")
    return ['<g class="sample">', *bars, "</g>", *(_text(8, y + 14 + 14 * k, word) for k, word in enumerate(words))]


def _axis(view: SpreadView, span: tuple[Fraction, Fraction], y: float) -> list[str]:
    """The line with its ends; an end that is infinite is an arrow."""
    if view.low is None or view.high is None:
        return [_text(_LEFT, y + 4, "NaN only")]
    parts = []
    if view.kind == "a bracket":
        parts.append(_line(view, span, view.low, view.high, y, f'class="bounds" stroke="{_THIN}" stroke-width="2"'))
        low, high = view.reached
        if low is not None and high is not None:
            parts.append(_line(view, span, low, high, y, f'class="reached" stroke="{_LINE}" stroke-width="6"'))
    else:
        style = f'class="{view.kind.replace(" ", "-")}" stroke="{_LINE}" stroke-width="{2 if view.outcomes else 6}"'
        parts.append(_line(view, span, view.low, view.high, y, style))
    ticks = view.outcomes or [end for end in (view.low, view.high, *view.reached) if end is not None]
    for value in ticks:
        place = view.place(value, span)
        if place is not None:
            parts.append(
                f'<g class="tick">{_tip(value)}<line x1="{_x(place):.1f}" y1="{y - 8}" x2="{_x(place):.1f}" '
                f'y2="{y + 8}" stroke="{_LINE}" stroke-width="1.5"/></g>'
            )
    ends = f"{view.low.decimal} … {view.high.decimal}" if view.low != view.high else view.low.decimal
    return [*parts, _text(_LEFT + _WIDE + 16, y + 4, ends)]


def _line(view: SpreadView, span: tuple[Fraction, Fraction], low: Float, high: Float, y: float, style: str) -> str:
    start, stop = view.place(low, span), view.place(high, span)
    a = _LEFT - 8.0 if start is None else _x(start)
    b = _LEFT + _WIDE + 8.0 if stop is None else _x(stop)
    arrows = ("" if start is not None else f"<path d='M{a:.0f} {y} l8 -5 v10 z' fill='{_LINE}'/>") + (
        "" if stop is not None else f"<path d='M{b:.0f} {y} l-8 -5 v10 z' fill='{_LINE}'/>"
    )
    return f'<line x1="{a:.1f}" y1="{y}" x2="{b:.1f}" y2="{y}" {style}/>{arrows}'


def _mark(view: SpreadView, mark: Mark, span: tuple[Fraction, Fraction], y: float) -> list[str]:
    place = view.place(mark.value, span)
    texts = [_text(8, y + 4, mark.name), _text(_LEFT + _WIDE + 16, y + 4, mark.value.decimal)]
    if place is None:
        return texts
    fill = _DOT if mark.allowed else "white"
    return [
        f'<g class="order">{_tip(mark.value)}<circle cx="{_x(place):.1f}" cy="{y}" r="4.5" fill="{fill}" '
        f'stroke="{_DOT}" stroke-width="1.5"/></g>',
        *texts,
    ]
