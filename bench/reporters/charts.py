"""The charts of a report: what they are, how to read them, and their drawing, which may fail without loss.

This module does not import matplotlib; the charts are drawn by a module each, imported when they are drawn.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.formatting import printable
from bench.result import RunResult


@dataclass(frozen=True)
class ChartKind:
    """A chart that a report has.

    Attributes:
        name: stem of its file and prefix of its function's name.
        heading: its heading in the page.
        caption: how to read it.
    """

    name: str
    heading: str
    caption: str

    @property
    def file_name(self) -> str:
        """Name of the PNG file."""
        return f"{self.name}.png"


@dataclass(frozen=True)
class Chart:
    """A chart, drawn or not.

    Attributes:
        kind: which chart.
        svg: the `<svg>` element for the page; empty if it could not be drawn.
        png: the PNG file; empty if it could not be drawn.
        description: its titles, for readers who cannot see it.
        missing: why it is not there; empty if it is.
        failed: whether drawing failed; False also where the run has nothing to draw.
    """

    kind: ChartKind
    svg: str = ""
    png: bytes = b""
    description: str = ""
    missing: str = ""
    failed: bool = False


CHART_KINDS = (
    ChartKind(
        "step_time",
        "Time per step",
        "Each bar is a step: the time that the device worked, and on top the time that it waited for "
        "data before. Hatched steps are warm-up and in no rate. A bar with an arrow is cut; its value stands "
        "beside the arrow.",
    ),
    ChartKind(
        "throughput",
        "Throughput",
        "Fresh and repeated examples add up to the trained ones. Echo raises the trained rate and AU "
        "although nothing new is read: judge it by the fresh rate too.",
    ),
    ChartKind(
        "timeline",
        "Timeline of some steps",
        "Upstream: when fresh elements left the upstream side during these steps; where they are many, their "
        "density. Elements that no step had used when the run ended are not in it. Transfer: its length is "
        "measured, its place is the latest possible. Device: busy with the step of that number, or waiting. "
        "Every other step is fainter in each lane.",
    ),
)

ECHO_FACTOR = ChartKind(
    "echo_factor",
    "Echo factor over time",
    "The elastic factor, where something sets it, and the one that came to be: trained / fresh examples. "
    "Below, the waiting that it follows.",
)
"""For elastic echo alone: a fixed factor needs no picture."""


def charts_of(result: RunResult) -> tuple[ChartKind, ...]:
    """Returns the charts that a report of this run has."""
    return (*CHART_KINDS, ECHO_FACTOR) if result.echo.get("factor") == "elastic" else CHART_KINDS


def draw_charts(result: RunResult) -> list[Chart]:
    """Draws every chart. One that cannot be drawn is returned with the reason why."""
    return [_draw(kind, result) for kind in charts_of(result)]


def _draw(kind: ChartKind, result: RunResult) -> Chart:
    try:
        with _any_backend_setting():
            canvas = importlib.import_module("bench.reporters.chart_canvas")
        module = importlib.import_module(f"bench.reporters.{kind.name}_chart")
        with canvas.chart_style():
            try:
                figure = getattr(module, f"{kind.name}_figure")(result)
            except canvas.NothingToDraw as reason:
                return Chart(kind, missing=str(reason))
            canvas.fix_layout(figure)
            svg, png = canvas.inline_svg(figure, kind.name), canvas.png_bytes(figure)
            return Chart(kind, svg=svg, png=png, description=f"{kind.heading}. {canvas.description(figure)}")
    except Exception as error:  # whatever a drawing library raises must not cost the run's figures
        missing = printable(f"The chart {kind.name!r} could not be drawn: {type(error).__name__}: {error}")
        return Chart(kind, missing=missing, failed=True)


@contextmanager
def _any_backend_setting() -> Iterator[None]:
    """Hides `MPLBACKEND`: matplotlib refuses to be imported when it names none of its backends."""
    setting = os.environ.pop("MPLBACKEND", None)
    try:
        yield
    finally:
        if setting is not None:
            os.environ["MPLBACKEND"] = setting
