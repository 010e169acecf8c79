import os
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from echoing.errors import DataError
from pipeline.datasets.image_bytes import RejectedImage
from pipeline.datasets.imagefolder import scan_image_folder

Folder = Callable[..., Path]


def filenames(listing: object) -> list[str]:
    return sorted(candidate.filename for candidate in listing.candidates)  # type: ignore[attr-defined]


def test_hidden_and_system_files_are_ignored_and_counted(write_folder: Folder) -> None:  # FC-01
    names = [".DS_Store", "cats/Thumbs.db", "cats/desktop.ini", ".git/x.jpg", "cats/.hidden.jpg"]
    more = ["__MACOSX/cats/1.jpg", "cats/._1.jpg", "cats/.cache/y.jpg"]
    src = write_folder(dict.fromkeys([*names, *more, "cats/1.jpg", "dogs/2.jpg"], b"x"))
    listing = scan_image_folder(str(src))
    assert listing.class_names == ["cats", "dogs"]
    assert filenames(listing) == ["cats/1.jpg", "dogs/2.jpg"]
    assert listing.ignored == {"hidden or system files": 8}
    assert listing.found == 2


def test_suffixes_count_in_any_case(write_folder: Folder) -> None:  # FC-04
    names = ["a/1.jpg", "a/2.JPG", "a/3.JPEG", "a/4.Jpeg", "a/5.PNG", "a/6.Gif", "a/7.BMP", "a/8.WebP"]
    assert filenames(scan_image_folder(str(write_folder(dict.fromkeys(names, b"x"))))) == names


def test_odd_names_of_classes_and_files_are_kept(write_folder: Folder) -> None:  # FC-06
    classes = ["#1", "a,b", "it's", "red fox", "naïve 猫"]
    src = write_folder({f"{name}/my photo (1).jpg": b"x" for name in classes})
    listing = scan_image_folder(str(src))
    assert listing.class_names == ["#1", "a,b", "it's", "naïve 猫", "red fox"]
    assert filenames(listing) == sorted(f"{name}/my photo (1).jpg" for name in classes)


def test_nested_pictures_belong_to_the_top_folder_and_root_pictures_are_rejected(
    write_folder: Folder,
) -> None:  # FC-08
    src = write_folder(dict.fromkeys(["x.jpg", "readme.txt", "a/sub/deep/1.jpg", "b/2.jpg"], b"x"))
    listing = scan_image_folder(str(src))
    assert [(c.filename, listing.class_names[c.class_index]) for c in listing.candidates] == [
        ("a/sub/deep/1.jpg", "a"),
        ("b/2.jpg", "b"),
    ]
    assert [reject.filename for reject in listing.rejects] == ["x.jpg"]
    assert listing.ignored == {"files that are no pictures": 1}
    assert listing.found == 3


@pytest.mark.parametrize(("pictures", "words"), [(0, "0 pictures"), (1, "1 picture "), (2, "2 pictures")])
def test_no_class_folders_is_an_error_that_counts_the_pictures(
    write_folder: Folder, pictures: int, words: str
) -> None:  # FC-08
    src = write_folder({"note.txt": b"x"} | {f"{number}.jpg": b"x" for number in range(pictures)})
    with pytest.raises(DataError) as caught:
        scan_image_folder(str(src))
    assert str(caught.value).startswith(f"no class folders found under {src}, found {words}")


def test_a_missing_folder_and_a_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        scan_image_folder(str(tmp_path / "none"))
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is a file"):
        scan_image_folder(str(tmp_path / "file"))


def test_an_empty_class_folder_counts_as_a_class(write_folder: Folder) -> None:  # FC-03
    listing = scan_image_folder(str(write_folder({"a/1.jpg": b"x", "b": None, "c/1.jpg": b"x"})))
    assert listing.class_names == ["a", "b", "c"]
    assert [candidate.class_index for candidate in listing.candidates] == [0, 2]


def test_pictures_of_an_unsupported_format_are_rejected_not_ignored(write_folder: Folder) -> None:
    listing = scan_image_folder(str(write_folder({"a/1.TIFF": b"x", "a/2.heic": b"x", "a/3.txt": b"x"})))
    assert [(reject.filename, reject.reason.split()[0]) for reject in listing.rejects] == [
        ("a/1.TIFF", ".tiff"),
        ("a/2.heic", ".heic"),
    ]
    assert listing.ignored == {"files that are no pictures": 1}


def test_links_to_folders_are_followed_but_not_in_circles(write_folder: Folder, tmp_path: Path) -> None:
    src = write_folder({"a/1.jpg": b"x"})
    other = write_folder({"2.jpg": b"x"}, name="elsewhere")
    (src / "b").symlink_to(other)
    (src / "a" / "loop").symlink_to(src / "a")
    listing = scan_image_folder(str(src))
    assert filenames(listing) == ["a/1.jpg", "b/2.jpg"]
    assert listing.ignored == {"links to a folder above": 1}


def test_a_class_name_that_the_class_list_cannot_hold_is_an_error(write_folder: Folder) -> None:
    with pytest.raises(DataError, match=r"'a\\nb'"):
        scan_image_folder(str(write_folder({"a\nb/1.jpg": b"x"})))


def test_a_file_name_that_is_no_utf8_is_rejected(write_folder: Folder) -> None:
    src = write_folder({"a/1.jpg": b"x"})
    try:
        Path(os.fsdecode(os.fsencode(src) + b"/a/\xff.jpg")).write_bytes(b"x")
    except OSError:
        pytest.skip("the file system refuses such names")
    listing = scan_image_folder(str(src))
    assert filenames(listing) == ["a/1.jpg"]
    assert [reject.filename for reject in listing.rejects] == ["a/\\udcff.jpg"]


@pytest.mark.parametrize("kind", ["pipe", "broken link"])
def test_what_is_no_regular_file_is_rejected_at_once(write_folder: Folder, kind: str) -> None:
    src = write_folder({"a": None})
    if kind == "pipe":
        os.mkfifo(src / "a" / "1.jpg")
    else:
        (src / "a" / "1.jpg").symlink_to(src / "nowhere")
    (candidate,) = scan_image_folder(str(src)).candidates
    with pytest.raises(RejectedImage, match="no regular file"):
        candidate.load(95)


def test_remote_folders_are_scanned_like_local_ones(picture_bytes: Callable[..., bytes]) -> None:  # CL-03
    root = "ram://imagefolder-test/src"
    for name in ("a/1.jpg", "a/sub/2.png", "b/.hidden.jpg", "b/3.jpg"):
        tf.io.gfile.makedirs(f"{root}/{name}".rsplit("/", 1)[0])
        with tf.io.gfile.GFile(f"{root}/{name}", "wb") as file:
            file.write(picture_bytes())
    listing = scan_image_folder(root)
    assert listing.class_names == ["a", "b"]
    assert filenames(listing) == ["a/1.jpg", "a/sub/2.png", "b/3.jpg"]
    assert {candidate.load(95).width for candidate in listing.candidates} == {12}
