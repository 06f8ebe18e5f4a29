"""What ``fpsmt sum`` draws beside its answer: trees in the terminal, and a plot of the results into a file."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from fpsmt.commands.common import Saver, say
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.kernel import Verdict
    from fpsmt.networks.brackets import Bracket
    from fpsmt.networks.outcomes import Sum
    from fpsmt.networks.trees import Tree

KINDS = (".svg", ".html")


@dataclass(frozen=True)
class Drawing:
    """`trees`: every tree is drawn whole.  `plot`: a file for the plot, ``-`` for the terminal."""

    trees: bool = False
    plot: str | None = None

    def check(self) -> None:
        """Refuses a file that cannot be written, before any work is done."""
        if self.plot in (None, "-"):
            return
        path = Path(str(self.plot))
        if path.suffix not in KINDS:
            raise UsageError(f"--plot {self.plot}: name a file that ends in .svg or .html, or - for the terminal")
        if not path.parent.is_dir() or path.is_dir():
            raise UsageError(f"--plot {self.plot}: {path.parent} is no folder, or this is one; name a file")

    def save(self, result: Verdict | Bracket, saver: Saver, pair: tuple[Sum, Tree, Tree] | None = None) -> None:
        """The plot of a sum's results; in an HTML file also the trees of the least and the greatest."""
        if self.plot is None:
            return
        from fpsmt.display.progress import Progress
        from fpsmt.display.spread import spread
        from fpsmt.display.trees import side_by_side

        with Progress("running random schedules for the plot"):
            view = spread(result)
        if self.plot == "-":
            saver.printer("", *view.lines())
            return
        path = Path(self.plot)
        text = view.svg + "\n"
        if path.suffix == ".html":
            trees = "" if pair is None else f"<h2>The least and the greatest</h2>\n{side_by_side(*pair)}\n"
            head = f'<head><meta charset="utf-8"><title>{escape(view.text)}</title></head>'
            text = (
                f'<!DOCTYPE html>\n<html lang="en">{head}\n'
                f'<body style="font-family:sans-serif">\n<h1>Results of one sum</h1>\n{text}{trees}</body></html>\n'
            )
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--plot {path} cannot be written: {error.strerror or error}") from None
        say(f"saved {path}")
