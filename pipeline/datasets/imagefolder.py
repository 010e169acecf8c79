"""Finds the pictures of an image folder: the top sub-folder is the class, all below belongs to it."""

from __future__ import annotations

import os
from functools import partial

from echoing.errors import DataError
from pipeline import filesystem
from pipeline.datasets.image_bytes import JpegImage, RejectedImage, to_rgb_jpeg
from pipeline.datasets.source_listing import Candidate, Reject, SourceListing

SUFFIXES = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp"})
"""Suffixes taken for pictures, in any case. The content decides what they are."""
UNSUPPORTED_SUFFIXES = frozenset({"tif", "tiff", "heic", "heif", "avif", "jp2", "jxl", "ppm", "tga"})
"""Pictures that are rejected by name, for leaving them out with the text files would lose data unnoticed."""
SYSTEM_NAMES = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "@eadir"})

HIDDEN = "hidden or system files"
OTHER = "files that are no pictures"


def scan_image_folder(src: str) -> SourceListing:
    """Lists the pictures under `src` without reading them.

    Classes are the sub-folders of `src`, sorted by code point; an empty one counts. Names that begin with a
    dot and system files are ignored and counted, folders among them as one. Pictures directly in `src`
    have no class and are rejected. Links to folders are followed, but not in circles.

    Args:
        src: the folder, local or remote.

    Raises:
        DataError: no such folder, no class folders, or a class folder whose name cannot be a class name.
    """
    if not filesystem.exists(src):
        raise DataError(f"The folder {src} does not exist. Name the folder that holds one folder a class.")
    if not filesystem.is_folder(src):
        raise DataError(f"{src} is a file. Name the folder that holds one folder a class.")
    listing = SourceListing()
    pictures_in_root = 0
    for name in filesystem.list_folder(src):
        path = filesystem.join(src, name)
        if _is_hidden(name):
            listing.ignored[HIDDEN] += 1
        elif filesystem.is_folder(path):
            listing.class_names.append(_class_name(name, src))
        elif _suffix(name) in SUFFIXES | UNSUPPORTED_SUFFIXES:
            pictures_in_root += 1
            listing.rejects.append(Reject(name, "lies directly in the folder of classes, so it has no class"))
        else:
            listing.ignored[OTHER] += 1
    if not listing.class_names:
        noun = "picture" if pictures_in_root == 1 else "pictures"
        raise DataError(
            f"no class folders found under {src}, found {pictures_in_root} {noun} directly in it. "
            "Name the folder that holds one folder a class."
        )
    for index, name in enumerate(listing.class_names):
        _scan_class(listing, filesystem.join(src, name), name, index, frozenset())
    return listing


def _scan_class(
    listing: SourceListing, folder: str, relative: str, class_index: int, above: frozenset[str]
) -> None:
    if not filesystem.is_remote(folder):
        real = os.path.realpath(folder)
        if real in above:
            listing.ignored["links to a folder above"] += 1
            return
        above = above | {real}
    for name in filesystem.list_folder(folder):
        path, filename = filesystem.join(folder, name), f"{relative}/{name}"
        if _is_hidden(name):
            listing.ignored[HIDDEN] += 1
        elif filesystem.is_folder(path):
            _scan_class(listing, path, filename, class_index, above)
        elif not _is_unicode(filename):
            shown = filename.encode("utf-8", "backslashreplace").decode()
            listing.rejects.append(Reject(shown, "the name is no UTF-8, which records need"))
        elif _suffix(name) in SUFFIXES:
            listing.candidates.append(Candidate(filename, class_index, partial(_load, path)))
        elif _suffix(name) in UNSUPPORTED_SUFFIXES:
            reason = f".{_suffix(name)} pictures are not supported; save it as PNG or JPEG"
            listing.rejects.append(Reject(filename, reason))
        else:
            listing.ignored[OTHER] += 1


def _load(path: str, quality: int) -> JpegImage:
    # A pipe or a device under a picture's name would block the reader for ever.
    if not filesystem.is_remote(path) and not os.path.isfile(path):  # noqa: PTH113
        raise RejectedImage("is no regular file, or a link that leads nowhere")
    try:
        content = filesystem.read_bytes(path)
    except DataError as error:
        raise RejectedImage(str(error)) from error
    return to_rgb_jpeg(content, quality)


def _class_name(name: str, src: str) -> str:
    """Returns `name`; refuses at once what `labels.txt` could not hold, not after hours of conversion."""
    if "\n" in name or "\r" in name or not name.strip() or not _is_unicode(name):
        raise DataError(
            f"The folder {name!r} under {src} cannot be a class: a class name needs visible characters, no "
            "line break, and UTF-8. Rename it."
        )
    return name


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in SYSTEM_NAMES


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
