"""Writes the shards of one split, all or nothing, then `labels.txt` and `dataset.json`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import tensorflow as tf

from echoing.errors import DataError, OptionError
from pipeline import filesystem
from pipeline.dataset_info import DatasetInfo, ShardInfo, read_dataset_info, with_split, write_dataset_info
from pipeline.datasets.boxes import clip_boxes
from pipeline.datasets.split_files import refuse_existing, shard_splits
from pipeline.labels import write_labels
from pipeline.schema import ImageRecord, serialize

_PARTIAL = ".partial"


class ShardWriter:
    """Writes `{split}-00000-of-00008` and so on; the final names appear when all records are written.

    Use it as a context manager: leaving it without `finish`, be it by an error or by Ctrl-C, removes what
    was written. Records go to the shards in runs (the first eighth to the first of eight shards), so that one
    file is open at a time, however many shards there are.

    Args:
        data_dir: the folder, local or remote; made if it is not there.
        split: name of the split.
        shards: most shards. A shard that would be empty is not written, so there may be fewer.
        positions: how many positions `write` may name.
        overwrite: whether shards of this split that are there may be replaced.

    Raises:
        DataError: shards of the split are there and may not be replaced, or the folder cannot be made.
    """

    def __init__(self, data_dir: str, split: str, shards: int, positions: int, overwrite: bool) -> None:
        self._data_dir, self._split = data_dir, split
        self._shards, self._positions = shards, positions
        self._old = refuse_existing(data_dir, split, overwrite)
        filesystem.make_folder(data_dir)
        self._writer: Any = None
        self._shard = -1
        self._partials: list[str] = []
        self._counts: list[int] = []
        self._finished = False

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._finished:
            self.discard()

    @property
    def records(self) -> int:
        """How many records were written."""
        return sum(self._counts)

    def write(self, record: ImageRecord, position: int) -> None:
        """Writes a record.

        Args:
            record: the record; its boxes are checked and clipped by the rule of the schema.
            position: place in the split, from 0; must not fall. Left-out positions leave their shard shorter.

        Raises:
            DataError: a box breaks the rule, or the file system refuses.
        """
        if record.boxes:
            boxes, problem = clip_boxes(record.boxes)
            if problem:
                raise DataError(f"{record.filename}: {problem}")
            record = replace(record, boxes=boxes)
        payload = serialize(record)
        shard = position * self._shards // self._positions
        try:
            if shard != self._shard:
                self._close()
                self._shard = shard
                path = filesystem.join(self._data_dir, f"{self._split}-{shard:05d}{_PARTIAL}")
                self._partials.append(path)
                self._counts.append(0)
                self._writer = tf.io.TFRecordWriter(path)
            self._writer.write(payload)
        except (tf.errors.OpError, OSError) as error:
            raise self._cannot_write(error) from error
        self._counts[-1] += 1

    def finish(
        self, labels: Sequence[str], source: str, options: Mapping[str, Any], exact_shards: bool = False
    ) -> DatasetInfo:
        """Writes `labels.txt`, gives the shards their final names and writes `dataset.json`.

        Args:
            labels: names of the classes 1, 2, ...
            source: `source` of the `DatasetInfo`.
            options: what made this split; kept under its name in `DatasetInfo.options`.
            exact_shards: whether fewer shards than asked for are an error.

        Raises:
            DataError: no record was written, or the file system refuses; then no final name is left.
        """
        try:
            self._close()
        except (tf.errors.OpError, OSError) as error:
            raise self._cannot_write(error) from error
        total = len(self._partials)
        if not total:
            raise DataError(f"No record was written for split {self._split!r} of {self._data_dir}.")
        if exact_shards and total < self._shards:
            raise OptionError(
                "shards", self._shards, f"at most {total} here, as {self.records} records fill no more", ""
            )
        names = [f"{self._split}-{index:05d}-of-{total:05d}" for index in range(total)]
        renamed: list[str] = []
        try:
            # The list first: if a name cannot be written, the shards that are replaced are still there.
            write_labels(self._data_dir, labels)
            for partial, name in zip(self._partials, names, strict=True):
                path = filesystem.join(self._data_dir, name)
                filesystem.rename(partial, path)
                renamed.append(path)
            for name in self._old:
                if name not in names:
                    filesystem.remove(filesystem.join(self._data_dir, name))
            info = self._merged(names, source, options)
            write_dataset_info(self._data_dir, info)
        except BaseException as error:
            for path in renamed:
                _remove_quietly(path)
            self.discard()
            if isinstance(error, tf.errors.OpError | OSError):
                raise self._cannot_write(error) from error
            raise
        self._finished = True
        return info

    def discard(self) -> None:
        """Removes the partial files."""
        with contextlib.suppress(tf.errors.OpError, OSError):  # what could not be flushed is removed next
            self._close()
        for path in self._partials:
            _remove_quietly(path)

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _merged(self, names: Sequence[str], source: str, options: Mapping[str, Any]) -> DatasetInfo:
        shards = [
            ShardInfo(name, count, filesystem.size_bytes(filesystem.join(self._data_dir, name)))
            for name, count in zip(names, self._counts, strict=True)
        ]
        before = read_dataset_info(self._data_dir)
        others = set(shard_splits(self._data_dir)) - {self._split}
        kept = (
            {} if before is None else {name: value for name, value in before.splits.items() if name in others}
        )
        kept_options = {} if before is None else {name: before.options.get(name, {}) for name in kept}
        info = DatasetInfo(source=source, splits=kept, options={**kept_options, self._split: dict(options)})
        return with_split(info, self._split, shards)

    def _cannot_write(self, error: Exception) -> DataError:
        reason = str(getattr(error, "message", None) or error).strip().rstrip(".")
        return DataError(
            f"Cannot write split {self._split!r} into {self._data_dir}: {reason}. "
            "Check the space and the permissions; nothing was left under a final name."
        )


def _remove_quietly(path: str) -> None:
    # Never made, or the folder is out of reach: the first error is the one to show.
    with contextlib.suppress(tf.errors.OpError, OSError):
        filesystem.remove(path)
