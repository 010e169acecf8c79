import io
import struct
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline.datasets.image_bytes import JpegImage, RejectedImage, to_rgb_jpeg

ORIENTATION = 0x0112


def encode(image: Image.Image, fmt: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, fmt, **options)
    return buffer.getvalue()


def noise(size: tuple[int, int] = (48, 40), seed: int = 0) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    )


def decoded(picture: JpegImage) -> np.ndarray[Any, Any]:
    """Decodes with TensorFlow, as the reader does; checks that the size fields tell the truth."""
    pixels = tf.io.decode_jpeg(picture.encoded).numpy()
    assert pixels.shape == (picture.height, picture.width, 3)
    return pixels.astype(int)


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    return tags.tobytes()


def without_segment(jpeg: bytes, marker: bytes) -> bytes:
    start = jpeg.index(marker)
    (length,) = struct.unpack(">H", jpeg[start + 2 : start + 4])
    return jpeg[:start] + jpeg[start + 2 + length :]


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"exif": exif(1)}])
def test_rgb_jpeg_is_kept_byte_for_byte(options: dict[str, Any]) -> None:
    content = encode(noise(), "JPEG", **options)
    assert to_rgb_jpeg(content, 95) == JpegImage(content, 40, 48, ("kept as they are",))


@pytest.mark.parametrize(
    ("fmt", "options"), [("PNG", {}), ("BMP", {}), ("WEBP", {"lossless": True}), ("GIF", {})]
)
def test_other_formats_become_rgb_jpeg_close_to_the_original(fmt: str, options: dict[str, Any]) -> None:
    gradient = np.linspace(0, 255, 64 * 64).reshape(64, 64).astype(np.uint8)
    image = Image.fromarray(np.stack([gradient, gradient.T, 255 - gradient], axis=-1))
    picture = to_rgb_jpeg(encode(image, fmt, **options), 95)
    tolerance = 20 if fmt == "GIF" else 6  # a GIF has 256 colours
    assert np.abs(decoded(picture) - np.asarray(image).astype(int)).mean() < tolerance
    assert picture.changes == (f"{fmt} to JPEG",)


def test_a_lower_quality_gives_a_smaller_jpeg() -> None:
    png = encode(noise(), "PNG")
    assert len(to_rgb_jpeg(png, 50).encoded) < len(to_rgb_jpeg(png, 95).encoded)


def test_grey_jpeg_becomes_rgb() -> None:
    picture = to_rgb_jpeg(encode(Image.new("L", (8, 6), 100), "JPEG"), 95)
    assert np.abs(decoded(picture) - 100).max() <= 2
    assert picture.changes == ("grey JPEG to RGB",)


def test_cmyk_jpeg_with_adobe_marker_keeps_red_red() -> None:  # IM-03
    content = encode(Image.new("CMYK", (32, 32), (0, 255, 255, 0)), "JPEG")
    assert b"\xff\xee" in content  # Adobe's marker: values are stored inverted
    picture = to_rgb_jpeg(content, 95)
    assert np.abs(decoded(picture).mean(axis=(0, 1)) - (255, 0, 0)).max() < 25
    assert picture.changes == ("CMYK JPEG to RGB",)


def test_cmyk_jpeg_without_adobe_marker_is_not_inverted() -> None:  # IM-03
    # Pillow stores CMYK inverted, so the inverse of red, without the marker, is plain red.
    content = without_segment(encode(Image.new("CMYK", (32, 32), (255, 0, 0, 255)), "JPEG"), b"\xff\xee")
    assert np.abs(decoded(to_rgb_jpeg(content, 95)).mean(axis=(0, 1)) - (255, 0, 0)).max() < 25
    # TensorFlow's own decoder reads the same file the same way.
    assert np.abs(tf.io.decode_jpeg(content, channels=3).numpy().mean(axis=(0, 1)) - (255, 0, 0)).max() < 25


def test_ycck_jpeg_keeps_red_red() -> None:  # IM-03
    # Adobe's marker with transform 2: CMY is stored as the YCbCr of (255 - C, 255 - M, 255 - Y). The inverted
    # CMY of red is (255, 0, 0), hence the YCbCr of (0, 255, 255), which is (179, 171, 1), and K 255.
    ycck = Image.merge("CMYK", [Image.new("L", (32, 32), 255 - value) for value in (179, 171, 1, 255)])
    content = bytearray(encode(ycck, "JPEG"))
    adobe = content.index(b"Adobe")
    content[adobe + 11] = 2
    # TensorFlow's own decoder confirms the input.
    assert np.abs(tf.io.decode_jpeg(bytes(content), channels=3).numpy() - np.array([255.0, 0, 0])).max() < 25
    picture = to_rgb_jpeg(bytes(content), 95)
    assert np.abs(decoded(picture).mean(axis=(0, 1)) - (255, 0, 0)).max() < 25


@pytest.mark.parametrize("frames", [1, 3])
def test_the_first_frame_of_a_gif_is_used(frames: int) -> None:  # IM-05
    colours = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")][:frames]
    content = encode(colours[0], "GIF", save_all=True, append_images=colours[1:])
    picture = to_rgb_jpeg(content, 95)
    assert np.abs(decoded(picture).mean(axis=(0, 1)) - (255, 0, 0)).max() < 10
    assert ("first frame of an animation" in picture.changes) == (frames == 3)


def test_16_bit_grey_png_is_scaled_and_not_cut_to_the_low_byte() -> None:  # IM-07
    values = np.repeat(np.array([0, 32768, 65535], np.uint16), 8)[:, None].repeat(16, axis=1)
    picture = to_rgb_jpeg(encode(Image.fromarray(values), "PNG"), 95)
    bands = decoded(picture)[[4, 12, 20], 8]
    assert np.abs(bands - np.array([[0], [128], [255]])).max() <= 2
    assert "16-bit scaled to 8 bits" in picture.changes


def test_16_bit_colour_png_is_scaled() -> None:  # IM-07
    # Written by hand (PNG specification): Pillow cannot write 16-bit colour.
    row = b"\x00" + struct.pack(">3H", 65535, 32768, 0) * 8
    chunks = [
        (b"IHDR", struct.pack(">2I5B", 8, 8, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * 8)),
        (b"IEND", b""),
    ]
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    picture = to_rgb_jpeg(content, 95)
    assert np.abs(decoded(picture).mean(axis=(0, 1)) - (255, 128, 0)).max() < 4
    assert "16-bit scaled to 8 bits" in picture.changes


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_pixels_become_white_and_opaque_ones_stay(mode: str) -> None:
    image = Image.new("RGBA", (16, 8), (0, 0, 0, 255))
    image.paste((255, 0, 0, 0), (8, 0, 16, 8))
    picture = to_rgb_jpeg(encode(image.convert(mode), "PNG"), 95)
    assert decoded(picture)[:, :8].max() <= 3
    assert decoded(picture)[:, 8:].min() >= 252
    assert "transparency laid over white" in picture.changes


def test_an_opaque_alpha_channel_changes_nothing() -> None:
    picture = to_rgb_jpeg(encode(Image.new("RGBA", (8, 8), (10, 20, 30, 255)), "PNG"), 95)
    assert picture.changes == ("PNG to JPEG",)


@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_pictures_of_few_colours_become_rgb(mode: str) -> None:
    picture = to_rgb_jpeg(encode(Image.new("RGB", (8, 8), "white").convert(mode), "PNG"), 95)
    assert decoded(picture).min() >= 252


# Where the red left half of a 40 x 20 picture goes when it is shown by the EXIF orientation.
RED_HALF = {2: "right", 3: "right", 4: "left", 5: "top", 6: "top", 7: "bottom", 8: "bottom"}


@pytest.mark.parametrize(("orientation", "side"), RED_HALF.items())
@pytest.mark.parametrize("fmt", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation_is_applied_to_the_pixels_and_dropped(
    orientation: int, side: str, fmt: str
) -> None:  # IM-11
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (0, 0, 20, 20))
    picture = to_rgb_jpeg(encode(image, fmt, exif=exif(orientation)), 95)
    turned = orientation >= 5
    assert (picture.height, picture.width) == ((40, 20) if turned else (20, 40))
    pixels = decoded(picture)
    half = {"left": pixels[:, :18], "right": pixels[:, 22:], "top": pixels[:18], "bottom": pixels[22:]}[side]
    assert np.abs(half.mean(axis=(0, 1)) - (255, 0, 0)).max() < 25
    assert Image.open(io.BytesIO(picture.encoded)).getexif().get(ORIENTATION) is None
    assert "turned upright (EXIF)" in picture.changes


@pytest.mark.parametrize("orientation", [0, 9, 60000])
def test_an_orientation_without_meaning_counts_as_upright(orientation: int) -> None:
    content = encode(noise(), "JPEG", exif=exif(orientation))
    assert to_rgb_jpeg(content, 95).encoded == content


def test_a_damaged_exif_block_does_not_cost_the_picture() -> None:
    content = encode(noise(), "JPEG", exif=b"Exif\x00\x00MM\x00\x2a\x00\x00\xff\xff")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert to_rgb_jpeg(content, 95).encoded == content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(encode(noise(), "JPEG"), id="jpeg"),
        pytest.param(encode(noise(), "JPEG", progressive=True), id="progressive"),
        pytest.param(encode(noise().convert("L"), "JPEG"), id="grey"),
        pytest.param(encode(noise().convert("CMYK"), "JPEG"), id="cmyk"),
        pytest.param(encode(noise(), "PNG"), id="png"),
        pytest.param(encode(noise(), "GIF"), id="gif"),
        pytest.param(encode(noise(), "BMP"), id="bmp"),
        pytest.param(encode(noise(), "WEBP"), id="webp"),
    ],
)
def test_a_truncated_picture_is_refused_or_whole_never_partly_grey(content: bytes) -> None:  # IM-01
    whole = np.asarray(Image.open(io.BytesIO(to_rgb_jpeg(content, 95).encoded)))
    refused = 0
    for length in [*range(0, len(content), max(1, len(content) // 80)), len(content) - 1]:
        try:
            picture = to_rgb_jpeg(content[:length], 95)
        except RejectedImage:
            refused += 1
        else:
            # Formats end with a mark that carries no pixels.
            assert length > len(content) - 20
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.encoded))), whole)
    assert refused >= 80


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty (0 bytes)"),
        (b"no picture at all", "no JPEG, PNG, GIF, BMP or WEBP"),
        (encode(Image.new("RGB", (4, 4)), "TIFF"), "no JPEG, PNG, GIF, BMP or WEBP"),
        (encode(Image.new("1", (20_000, 20_000)), "PNG"), "178,956,970"),
        (encode(Image.new("1", (70_000, 2)), "PNG"), "65,500 on a side"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(content: bytes, words: str) -> None:
    with pytest.raises(RejectedImage) as caught:
        to_rgb_jpeg(content, 95)
    assert words in str(caught.value)


def test_a_file_that_claims_gigabytes_is_refused_before_it_is_decoded() -> None:
    content = bytearray(encode(Image.new("L", (8, 8)), "JPEG"))
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">2H", 64250, 64250)
    with pytest.raises(RejectedImage, match="pixels"):
        to_rgb_jpeg(bytes(content), 95)


@pytest.mark.parametrize("size", [(1, 1), (1, 2000), (2000, 1)])
def test_extreme_sizes_are_kept(size: tuple[int, int]) -> None:
    picture = to_rgb_jpeg(encode(Image.new("RGB", size), "PNG"), 95)
    assert (picture.width, picture.height) == size
    decoded(picture)
