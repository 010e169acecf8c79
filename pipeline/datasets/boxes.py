"""The rule for boxes on the writing side: rounding is clipped, the rest refused; and boxes from a CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from echoing.errors import DataError
from pipeline import filesystem

if TYPE_CHECKING:
    from pipeline.schema import Box

CSV_COLUMNS = ("filename", "xmin", "ymin", "xmax", "ymax")


def clip_boxes(boxes: Iterable[Box]) -> tuple[tuple[Box, ...], str]:
    """Clips boxes to [0, 1] where they lie outside by no more than rounding.

    Args:
        boxes: in fractions of the upright image.

    Returns:
        The clipped boxes and an empty string; or no boxes and what is wrong with the first that breaks the
        rule of `schema.box_problem`, as it stands or after clipping.
    """
    from pipeline.schema import Box, box_problem

    clipped_boxes = []
    for box in boxes:
        problem = box_problem(box.ymin, box.xmin, box.ymax, box.xmax)
        clipped = Box(*(min(max(value, 0.0), 1.0) for value in (box.ymin, box.xmin, box.ymax, box.xmax)))
        # A sliver wholly outside, such as 1.00001 to 1.00005, has no area left after clipping.
        problem = problem or box_problem(clipped.ymin, clipped.xmin, clipped.ymax, clipped.xmax)
        if problem:
            return (), problem
        clipped_boxes.append(clipped)
    return tuple(clipped_boxes), ""


def read_boxes_csv(path: str) -> dict[str, list[Box]]:
    """Reads boxes from a CSV file with the columns `CSV_COLUMNS`, in fractions of the upright image.

    Args:
        path: the file; `filename` is the path of the picture relative to the folder that is converted.

    Returns:
        The boxes of each picture, in the order of the file; not yet checked against the rule for boxes.

    Raises:
        DataError: the file is missing, a column is missing, or a coordinate is no finite number.
    """
    from pipeline.schema import Box

    if not filesystem.exists(path):
        raise DataError(f"The file of boxes {path} does not exist. Name a CSV file with a header line.")
    rows = csv.DictReader(io.StringIO(filesystem.read_text(path).removeprefix("\ufeff"), newline=""))
    missing = [name for name in CSV_COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise DataError(
            f"{path} has no column {', '.join(missing)}; its header is {list(rows.fieldnames or ())}. "
            f"The columns must be {','.join(CSV_COLUMNS)}."
        )
    boxes: dict[str, list[Box]] = {}
    for row in rows:
        values = {
            name: _coordinate(row[name], name, f"{path}, line {rows.line_num}") for name in CSV_COLUMNS[1:]
        }
        boxes.setdefault(row["filename"], []).append(Box(**values))
    return boxes


def _coordinate(text: str | None, name: str, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: {name} is {text!r}, but must be a number from 0 to 1.")
    return value
