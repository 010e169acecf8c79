"""Converts an image folder or IDX files into shards in the ImageNet schema."""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from echoing.errors import DataError, OptionError
from pipeline import filesystem
from pipeline.datasets.boxes import clip_boxes, read_boxes_csv
from pipeline.datasets.class_list import known_classes, missing_classes_warning, settle_classes
from pipeline.datasets.convert_options import ConvertOptions, ConvertSummary
from pipeline.datasets.idx import scan_idx
from pipeline.datasets.image_bytes import JpegImage, RejectedImage
from pipeline.datasets.imagefolder import scan_image_folder
from pipeline.datasets.ordered_map import IN_FLIGHT_PER_WORKER, Progress, available_cores, ordered_map
from pipeline.datasets.rejects import refuse_rejects, write_rejects
from pipeline.datasets.source_listing import Candidate, Reject, SourceListing
from pipeline.datasets.split_files import refuse_existing, shard_splits

if TYPE_CHECKING:
    from pipeline.schema import Box, ImageRecord


def convert_dataset(
    options: ConvertOptions, src: str, data_dir: str, progress: Progress | None = None
) -> ConvertSummary:
    """Converts the pictures in `src` into one split in `data_dir`, all or nothing.

    Other splits in the folder stay, and their class list numbers the classes of the new one. Rejected
    pictures are listed in `rejected-{split}.tsv` beside the shards, also when they fail the conversion.

    Args:
        options: how to convert.
        src: folder with the pictures, local or remote.
        data_dir: folder for the shards, local or remote; made if it is not there.
        progress: called with (done, total) after each picture.

    Raises:
        DataError: nothing to convert, a picture is unusable and `skip_bad` is off, all are, a class is
            unknown to the class list, the split is there already, or a file cannot be written.
        OptionError: more shards than records.
    """
    refuse_existing(data_dir, options.split, options.overwrite)
    _check_apart(src, data_dir)
    listing = scan_image_folder(src) if options.source == "imagefolder" else scan_idx(src, options.split)
    if not listing.found:
        raise DataError(
            f"No pictures found under {src} ({sum(listing.ignored.values())} other files ignored)."
        )
    fresh = set(shard_splits(data_dir)) == {options.split}
    known = known_classes(data_dir, options.labels_file, fresh)
    names, labels = _number_classes(options.source, listing, known, data_dir)
    _check_shards(options, listing)
    boxes = {} if options.boxes_file is None else read_boxes_csv(options.boxes_file)
    # Shuffled, so that each shard holds all classes; the same for the same names and seed.
    random.Random(options.seed).shuffle(listing.candidates)

    from pipeline.datasets.writer import ShardWriter  # imports TensorFlow: not before the input is known good

    positions = max(1, len(listing.candidates))
    shards = options.shards or min(8, positions)
    with ShardWriter(data_dir, options.split, shards, positions, options.overwrite) as writer:
        tally = _Tally(rejects=list(listing.rejects))
        for position, (candidate, image) in enumerate(_decoded(options, listing.candidates)):
            record = tally.record(candidate, image, names, labels, boxes.get(candidate.filename, ()))
            # After a reject that fails the conversion the rest is only looked at, to list all rejects.
            if record is not None and (options.skip_bad or not tally.rejects):
                writer.write(record, position)
            if progress is not None:
                progress(position + 1, len(listing.candidates))
        rejected_file = write_rejects(data_dir, options.split, tally.rejects)
        refuse_rejects(tally.rejects, listing.found, src, rejected_file, options.skip_bad)
        summary = ConvertSummary(
            data_dir=data_dir,
            split=options.split,
            found=listing.found,
            written=writer.records,
            rejected=len(tally.rejects),
            rejected_file=rejected_file,
            ignored=dict(listing.ignored),
            changes=dict(tally.changes),
            classes=names,
            shards=[],
            warnings=missing_classes_warning(names, tally.classes, options.split)
            + _unused_boxes_warning(boxes, listing),
        )
        made_by = {
            "src": src,
            "seed": options.seed,
            "quality": options.quality,
            "found": summary.found,
            "written": summary.written,
            "rejected": summary.rejected,
            "ignored": summary.ignored,
            "changes": summary.changes,
        }
        info = writer.finish(names, options.source, made_by, exact_shards=options.shards is not None)
    return replace(summary, shards=[shard.name for shard in info.splits[options.split]])


@dataclass
class _Tally:
    """What became of the pictures so far.

    Attributes:
        rejects: the pictures left out.
        changes: how many records were changed in which way.
        classes: names of the classes that have a record.
    """

    rejects: list[Reject]
    changes: Counter[str] = field(default_factory=Counter)
    classes: set[str] = field(default_factory=set)

    def record(
        self,
        candidate: Candidate,
        image: JpegImage | Reject,
        names: Sequence[str],
        labels: Sequence[int],
        boxes: Sequence[Box],
    ) -> ImageRecord | None:
        """Returns the record of a picture, or None if it is rejected; counts either."""
        from pipeline.schema import ImageRecord

        image_boxes, problem = clip_boxes(boxes)
        if isinstance(image, Reject) or problem:
            self.rejects.append(image if isinstance(image, Reject) else Reject(candidate.filename, problem))
            return None
        label = labels[candidate.class_index]
        self.changes.update(image.changes)
        self.classes.add(names[label - 1])
        return ImageRecord(
            encoded=image.encoded,
            label=label,
            text=names[label - 1],
            height=image.height,
            width=image.width,
            filename=candidate.filename,
            boxes=image_boxes,
        )


def _decoded(
    options: ConvertOptions, candidates: Sequence[Candidate]
) -> Iterator[tuple[Candidate, JpegImage | Reject]]:
    """Yields every candidate with what became of it, in order, decoded by threads."""
    workers = options.workers or available_cores()
    with warnings.catch_warnings(), ThreadPoolExecutor(workers, "pipebench-convert") as executor:
        # Pillow warns of large pictures and odd metadata; what cannot be decoded raises all the same.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        outcomes = ordered_map(
            executor, _decoder(options.quality), candidates, workers * IN_FLIGHT_PER_WORKER
        )
        yield from zip(candidates, outcomes, strict=True)


def _decoder(quality: int) -> Callable[[Candidate], JpegImage | Reject]:
    def decode(candidate: Candidate) -> JpegImage | Reject:
        try:
            return candidate.load(quality)
        except RejectedImage as error:
            return Reject(candidate.filename, str(error))

    return decode


def _number_classes(
    source: str, listing: SourceListing, known: Sequence[str] | None, data_dir: str
) -> tuple[list[str], list[int]]:
    """Returns the class list, and the label (from 1) of each class index of the listing."""
    if source == "imagefolder":
        names = settle_classes(known, listing.class_names, data_dir)
        numbers = {name: number for number, name in enumerate(names, start=1)}
        return names, [numbers[name] for name in listing.class_names]
    names = listing.class_names if known is None else list(known)
    highest = max(candidate.class_index for candidate in listing.candidates)
    if highest >= len(names):
        raise DataError(
            f"The label file holds the value {highest}, but the class list has {len(names)} names, for the "
            f"values 0 to {len(names) - 1}. Give the right list, or write to another folder."
        )
    return names, list(range(1, len(names) + 1))


def _check_shards(options: ConvertOptions, listing: SourceListing) -> None:
    """Says before the first picture is decoded what `ShardWriter.finish` would say after the last."""
    pictures = len(listing.candidates)
    if options.shards is not None and options.shards > max(1, pictures):
        raise OptionError(
            "shards", options.shards, f"an integer from 1 to {pictures} for {pictures} pictures"
        )


def _unused_boxes_warning(boxes: Mapping[str, Sequence[Box]], listing: SourceListing) -> list[str]:
    unused = sorted(set(boxes) - {candidate.filename for candidate in listing.candidates})
    if not unused:
        return []
    some = ", ".join(map(repr, unused[:5])) + (", ..." if len(unused) > 5 else "")
    return [f"the file of boxes names {len(unused)} pictures that were not found: {some}"]


def _check_apart(src: str, data_dir: str) -> None:
    """Refuses to write into the folder that is read, where the shards would look like a class next time."""
    if filesystem.is_remote(src) or filesystem.is_remote(data_dir):
        inside = (data_dir.rstrip("/") + "/").startswith(src.rstrip("/") + "/")
    else:
        source, target = os.path.realpath(src), os.path.realpath(data_dir)
        inside = os.path.commonpath([source, target]) == source
    if inside:
        raise DataError(f"{data_dir} lies in {src}, which is read. Write to a folder outside it.")
