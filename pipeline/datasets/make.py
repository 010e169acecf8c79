"""Makes a generated data set: photo-like images, rendered in parallel, as shards in the ImageNet schema."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial

from echoing.checks import check_integer
from echoing.errors import DataError, PipebenchError
from pipeline.dataset_info import DatasetInfo
from pipeline.datasets.class_list import known_classes
from pipeline.datasets.ordered_map import IN_FLIGHT_PER_WORKER, Progress, available_cores, ordered_map
from pipeline.datasets.scene import RenderedExample, SceneSpec, render_example
from pipeline.datasets.shapes import MAX_CLASSES, signature
from pipeline.datasets.split_files import check_split, shard_splits

DEFAULT_QUALITY = 93
"""Gives ImageNet's mean record size, about 110 KB at 500 x 375, with the textures of `scene`."""
MIN_SIDE, MAX_SIDE = 16, 4096
"""Below, a pattern cannot be seen; above, one rendering takes more than a gigabyte."""

_EXAMPLES_PER_WORKER = 16
"""A worker process takes about 0.3 s to start, as long as it takes to render so many images."""


@dataclass(frozen=True)
class MakeOptions:
    """What to generate.

    Attributes:
        examples: number of images.
        classes: number of classes, 1 to 1,080; each block of so many examples holds each class once.
        height: typical height of a landscape image, pixels.
        width: typical width of a landscape image, pixels.
        fixed_size: every image has exactly this size; otherwise sizes vary, a quarter are upright, and the
            mean area is that of height x width.
        quality: JPEG quality, 1 to 100.
        shards: number of shards, at most `examples`; None for 8, or fewer for fewer examples.
        split: name of the split. Splits of one seed have different images.
        seed: the images depend on it, the split, their index, the classes, the size and the quality alone.
        workers: processes that render; None for one a core. It does not change the result.
        overwrite: whether shards of this split may be replaced.

    Raises:
        OptionError: a value is out of range.
    """

    examples: int = 1024
    classes: int = 10
    height: int = 375
    width: int = 500
    fixed_size: bool = False
    quality: int = DEFAULT_QUALITY
    shards: int | None = None
    split: str = "train"
    seed: int = 0
    workers: int | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        check_integer("examples", self.examples, 1)
        check_integer("classes", self.classes, 1, MAX_CLASSES)
        check_integer("height", self.height, MIN_SIDE, MAX_SIDE)
        check_integer("width", self.width, MIN_SIDE, MAX_SIDE)
        check_integer("quality", self.quality, 1, 100)
        check_integer("seed", self.seed, 0)
        check_split(self.split)
        if self.shards is not None:
            check_integer(
                "shards", self.shards, 1, min(self.examples, 99_999), "A shard needs at least one example."
            )
        if self.workers is not None:
            check_integer("workers", self.workers, 1)

    @property
    def shard_count(self) -> int:
        """The number of shards that are written."""
        return self.shards if self.shards is not None else min(8, self.examples)

    @property
    def scene(self) -> SceneSpec:
        """What the renderer needs to know."""
        return SceneSpec(
            self.seed, self.split, self.classes, self.height, self.width, self.fixed_size, self.quality
        )


def make_dataset(options: MakeOptions, data_dir: str, progress: Progress | None = None) -> DatasetInfo:
    """Generates a split and writes it into `data_dir`, all or nothing.

    Other splits in the folder stay; they must be of the same classes.

    Args:
        options: what to generate.
        data_dir: the folder, local or remote; made if it is not there.
        progress: called with (done, total) after each image.

    Returns:
        The content of the `dataset.json` that was written; `options[split]` holds the options.

    Raises:
        DataError: the split is there already, other splits have other classes, or the folder cannot be
            written.
    """
    from pipeline.datasets.writer import (
        ShardWriter,
    )  # imports TensorFlow: not before the options are known good
    from pipeline.schema import Box, ImageRecord

    names = [signature(index).name for index in range(options.classes)]
    _check_classes(data_dir, options.split, names)
    with ShardWriter(
        data_dir, options.split, options.shard_count, options.examples, options.overwrite
    ) as writer:
        for index, example in enumerate(_rendered(options)):
            record = ImageRecord(
                encoded=example.encoded,
                label=example.class_index + 1,
                text=names[example.class_index],
                height=example.height,
                width=example.width,
                filename=f"{options.split}_{index:08d}.JPEG",
                boxes=tuple(Box(*box) for box in example.boxes),
            )
            writer.write(record, index)
            if progress is not None:
                progress(index + 1, options.examples)
        described = {**asdict(options), "shards": options.shard_count}
        del described["workers"], described["overwrite"]  # how, not what
        return writer.finish(names, "generated", described)


def _check_classes(data_dir: str, split: str, names: list[str]) -> None:
    if set(shard_splits(data_dir)) - {split}:
        existing = known_classes(data_dir, None, fresh=False)
        if existing is not None and existing != names:
            raise DataError(
                f"{data_dir} holds another split with {len(existing)} classes ({existing[0]!r}, ...), but "
                f"this one would have {len(names)} ({names[0]!r}, ...). "
                "Use the same number of classes, or another folder."
            )


def _rendered(options: MakeOptions) -> Iterator[RenderedExample]:
    render, indices = partial(render_example, options.scene), range(options.examples)
    useful = -(-options.examples // _EXAMPLES_PER_WORKER)
    workers = min(options.workers or available_cores(), useful)
    if workers == 1:
        yield from map(render, indices)
        return
    # Spawn, not fork: the caller may run TensorFlow's threads. The workers import NumPy and Pillow only.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _ignore_interrupts)
    try:
        yield from ordered_map(executor, render, indices, workers * IN_FLIGHT_PER_WORKER)
    except BrokenProcessPool as error:
        raise PipebenchError(
            "A process that renders images ended early (out of memory, or started from a script that has no "
            'if __name__ == "__main__": block). Set workers to 1 to render in this process.'
        ) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leaves Ctrl-C, which the terminal sends to every process of the group, to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
