import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echoing.errors import DataError, OptionError
from pipeline.datasets.idx import read_idx, scan_idx

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 6, 4), dtype=np.uint8)
LABELS = np.array([3, 0, 9, 3, 1], np.uint8)


def idx_bytes(values: np.ndarray) -> bytes:  # type: ignore[type-arg]
    header = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    return header + values.tobytes()


def write_set(
    folder: Path,
    prefix: str = "train",
    images: bytes | None = None,
    labels: bytes | None = None,
    suffix: str = "",
) -> Path:
    (folder / f"{prefix}-images-idx3-ubyte{suffix}").write_bytes(
        idx_bytes(PIXELS) if images is None else images
    )
    (folder / f"{prefix}-labels-idx1-ubyte{suffix}").write_bytes(
        idx_bytes(LABELS) if labels is None else labels
    )
    return folder


def test_images_and_labels_are_paired_in_order(tmp_path: Path) -> None:
    listing = scan_idx(str(write_set(tmp_path)), "train")
    assert [candidate.class_index for candidate in listing.candidates] == [3, 0, 9, 3, 1]
    assert [candidate.filename for candidate in listing.candidates][:2] == [
        "train-images-idx3-ubyte#0",
        "train-images-idx3-ubyte#1",
    ]
    assert listing.class_names == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
    picture = listing.candidates[2].load(95)
    assert (picture.height, picture.width) == (6, 4)
    decoded = np.asarray(Image.open(io.BytesIO(picture.encoded)))
    assert decoded.shape == (6, 4, 3)
    assert np.abs(decoded.astype(int) - PIXELS[2][..., None]).max() < 12


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_gzip_is_recognised_by_content_not_by_name(tmp_path: Path, suffix: str) -> None:
    zipped, plain = gzip.compress(idx_bytes(PIXELS)), idx_bytes(LABELS)
    write_set(tmp_path, images=zipped, labels=plain, suffix=suffix)
    assert len(scan_idx(str(tmp_path), "train").candidates) == 5


def test_each_split_reads_its_own_files(tmp_path: Path) -> None:
    write_set(tmp_path, "train")
    write_set(tmp_path, "t10k", idx_bytes(PIXELS[:2]), idx_bytes(LABELS[:2]))
    counts = {
        split: len(scan_idx(str(tmp_path), split).candidates) for split in ("train", "validation", "test")
    }
    assert counts == {"train": 5, "validation": 2, "test": 2}
    with pytest.raises(OptionError, match="split is 'other'"):
        scan_idx(str(tmp_path), "other")


def test_the_spelling_with_a_dot_is_read_too_but_not_both(tmp_path: Path) -> None:
    (tmp_path / "train-images.idx3-ubyte").write_bytes(idx_bytes(PIXELS))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(LABELS))
    assert len(scan_idx(str(tmp_path), "train").candidates) == 5
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(PIXELS)))
    with pytest.raises(DataError, match="holds both"):
        scan_idx(str(tmp_path), "train")


def test_more_than_ten_label_values_give_more_classes(tmp_path: Path) -> None:
    write_set(tmp_path, labels=idx_bytes(np.array([0, 1, 2, 3, 12], np.uint8)))
    assert scan_idx(str(tmp_path), "train").class_names[-1] == "12"


IMAGES_FILE = idx_bytes(PIXELS)


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (IMAGES_FILE, idx_bytes(LABELS[:4]), "holds 5 images, but .* 4 labels"),
        (IMAGES_FILE[:-1], None, "should hold 120 bytes .*5 x 6 x 4.* only 119"),
        (IMAGES_FILE + b"x", None, "holds more"),
        (IMAGES_FILE[:10], None, "ends inside its header, after 10 bytes"),
        (b"", None, "begins with nothing"),
        (idx_bytes(LABELS), None, "begins with 00000801, .* begins with 00000803.*swapped"),
        (IMAGES_FILE, IMAGES_FILE, "begins with 00000803, .*1 dimension begins with 00000801"),
        (b"<html>", None, "begins with 3c68746d"),
        (bytes((0, 0, 13, 3)) + IMAGES_FILE[4:], None, "begins with 00000d03"),
        (gzip.compress(IMAGES_FILE)[:-20], None, "damaged gzip"),
        (gzip.compress(IMAGES_FILE)[:4] + b"\0" * 40, None, "damaged gzip|begins with"),
        (idx_bytes(PIXELS[:0]), idx_bytes(LABELS[:0]), "holds no images"),
        (idx_bytes(PIXELS[:, :0]), None, "holds no images"),
        # A damaged header that claims 2 ** 96 bytes must not be believed.
        (b"\0\0\x08\x03" + b"\xff" * 12 + b"x" * 9, None, "only 9"),
    ],
)
def test_damaged_files_are_refused_with_what_was_found(
    tmp_path: Path, images: bytes, labels: bytes | None, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        scan_idx(str(write_set(tmp_path, images=images, labels=labels)), "train")


def test_missing_files_are_named_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"no train-images-idx3-ubyte\[\.gz\]; it holds: notes\.txt"):
        scan_idx(str(tmp_path), "train")
    with pytest.raises(DataError, match="no folder"):
        scan_idx(str(tmp_path / "none"), "train")


def test_one_file_can_be_read_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(idx_bytes(PIXELS))
    assert np.array_equal(read_idx(str(tmp_path / "f"), 3), PIXELS)
