"""Tables as text: columns as wide as they need to be, cells cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence


def cut(text: str, width: int) -> str:
    """The text, or its beginning and ``...`` when it is longer than the width.

    >>> cut("((0+1)+(2+3))", 10)
    '((0+1)+...'
    """
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Lines of a table, columns padded to one width, no spaces at line ends.

    >>> print("\\n".join(text_table(["value", "bits"], [["1.0", "0x3c00"], ["-inf", "0xfc00"]], "")))
    value  bits
    1.0    0x3c00
    -inf   0xfc00
    """
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    return [(indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))).rstrip() for row in table]
