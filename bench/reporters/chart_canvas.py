"""What the charts share: palette, figures without a window system, and their two file formats.

Only matplotlib's object-oriented interface is used, with the Agg and SVG canvases: pyplot would choose a
backend from `MPLBACKEND` and `DISPLAY` and may open a window library.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito, "Color Universal Design" (2008): distinct to people with each kind of colour blindness.
BUSY = "#0072b2"
WAITING = "#e69f00"
FRESH = "#009e73"
REPEATED = "#56b4e9"
TRANSFER = "#cc79a7"
LIMIT = "#d55e00"

INK = "#1f2933"
MUTED = "#66727f"
GRID = "#dde2e7"

THEME_VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)"}
"""Colours that the page replaces with its own, so that charts follow light and dark."""

WIDTH_INCHES = 9.0
"""864 px at the 96 px an inch of browsers: drawn at full size in a page 900 px wide."""

PNG_DOTS_PER_INCH = 150


class NothingToDraw(Exception):  # noqa: N818 - no error: the run has nothing for this chart
    """The result holds nothing that this chart could show; the message says what is missing."""


@contextmanager
def chart_style() -> Iterator[None]:
    """Sets the style of the charts for a while, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # leaves the backend alone
        matplotlib.rcParams.update(
            {
                # Names come from result files: a `$` in them must not start a formula.
                "text.parse_math": False,
                "svg.fonttype": "none",
                "font.size": 10,
                "axes.titlesize": 10,
                "axes.titlelocation": "left",
                "axes.labelsize": 9.5,
                "axes.edgecolor": MUTED,
                "axes.labelcolor": MUTED,
                "axes.titlecolor": INK,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.axisbelow": True,
                "grid.color": GRID,
                "grid.linewidth": 0.8,
                "text.color": INK,
                "xtick.color": MUTED,
                "ytick.color": MUTED,
                "xtick.labelsize": 9,
                "ytick.labelsize": 9,
                "legend.frameon": False,
                "legend.fontsize": 9,
                "hatch.linewidth": 0.7,
            }
        )
        yield


def new_figure(height_inches: float, title: str) -> Figure:
    """Returns an empty figure with its finding as the title."""
    figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.008, ha="left", fontsize=12.5, fontweight="bold")
    return figure


def description(figure: Figure) -> str:
    """Returns the titles of a figure as one text, for readers who cannot see it."""
    titles = [figure.get_suptitle(), *(axes.get_title(loc="left") for axes in figure.axes)]
    return ". ".join(title for title in titles if title) + "."


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """Puts a legend of labelled handles under the figure."""
    figure.legend(handles=handles, loc="outside lower left", ncols=min(4, len(handles)))


def fix_layout(figure: Figure) -> None:
    """Lays the figure out once for both file formats; doing it in each costs a third of the drawing time."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")


def png_bytes(figure: Figure) -> bytes:
    """Returns the figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def inline_svg(figure: Figure, name: str) -> str:
    """Returns the figure as an `<svg>` element for a page; the same figure gives the same text.

    Args:
        figure: what to draw.
        name: prefix of the ids in it, so that several charts fit in one page.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # In a page the parser knows the namespaces, `href` needs none, and the style sheet sets the size.
    root, rest = text.split(">", 1)
    text = re.sub(r' (?:xmlns(?::\w+)?|version|width|height)="[^"]*"', "", root) + ">" + rest
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in THEME_VARIABLES.items():
        text = text.replace(colour, variable)
    return text.strip()
