"""The file that lists rejected pictures beside the shards, and the rule that they fail the conversion."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from echoing.errors import DataError
from pipeline import filesystem
from pipeline.datasets.source_listing import Reject

_SHOWN = 5


def rejected_file_name(split: str) -> str:
    """Returns the name of the list of a split; it is not that of a shard."""
    return f"rejected-{split}.tsv"


def write_rejects(data_dir: str, split: str, rejects: Sequence[Reject]) -> str | None:
    """Writes the list, or removes an old one if there is nothing to list.

    Returns:
        The path of the list (tab-separated, with a header line), or None.

    Raises:
        DataError: it cannot be written.
    """
    path = filesystem.join(data_dir, rejected_file_name(split))
    if not rejects:
        if filesystem.exists(path):
            filesystem.remove(path)
        return None
    text = io.StringIO(newline="")
    rows = csv.writer(text, "excel-tab", lineterminator="\n")
    rows.writerow(["filename", "reason"])
    rows.writerows(sorted((reject.filename, reject.reason) for reject in rejects))
    filesystem.write_text(path, text.getvalue())
    return path


def refuse_rejects(
    rejects: Sequence[Reject], found: int, src: str, rejected_file: str | None, skip_bad: bool
) -> None:
    """Raises unless the conversion may go on with these rejects.

    Raises:
        DataError: there are rejects and they may not be skipped, or nothing else is left.
    """
    if not rejects or (skip_bad and len(rejects) < found):
        return
    ordered = sorted(rejects, key=lambda reject: reject.filename)
    some = "; ".join(f"{reject.filename}: {reject.reason}" for reject in ordered[:_SHOWN])
    more = f"; and {len(rejects) - _SHOWN} more" if len(rejects) > _SHOWN else ""
    if len(rejects) == found:
        verdict, advice = f"all {found} pictures under {src} are unusable", "No shards were written."
    else:
        verdict = f"{len(rejects)} of {found} pictures under {src} are unusable"
        advice = "No shards were written. Repair or remove them, or pass --skip-bad to leave them out."
    raise DataError(f"{verdict}: {some}{more}. The list is in {rejected_file}. {advice}")
