"""Odd and bad images: both ways of decoding give the same verdict and the same pixels, and nothing crashes.

The inputs are made by Pillow, or by changing bytes of what it made.
"""

from __future__ import annotations

import functools
import io
import itertools
import re
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from pipeline.datasets.image_check import try_image
from pipeline.image_decoding import DecodeOptions, decode_image, decode_window, image_size
from pipeline.skipping import SkipCounter

HEIGHT, WIDTH = 48, 64
MAX_PIXELS = 100_000


def picture(height: int = HEIGHT, width: int = WIDTH) -> Image.Image:
    """Soft blobs with a little noise: every block and every chroma sample differs."""
    generator = np.random.default_rng(5)
    small = Image.fromarray(generator.integers(0, 256, (5, 6, 3), np.uint8))
    soft = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    return Image.fromarray(np.clip(soft + generator.integers(-9, 10, soft.shape), 0, 255).astype(np.uint8))


def save(image: Image.Image, image_format: str = "JPEG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def jpeg(**options) -> bytes:
    return save(picture(), quality=90, **options)


def frame_header(encoded: bytes) -> int:
    """Position of the JPEG's frame header: marker, length, precision, height, width, components."""
    return next(at for at in range(len(encoded)) if encoded[at : at + 2] in (b"\xff\xc0", b"\xff\xc2"))


def patched(encoded: bytes, offset: int, new: bytes) -> bytes:
    """Overwrites bytes of the frame header."""
    at = frame_header(encoded) + offset
    return encoded[:at] + new + encoded[at + len(new) :]


def scan_start(encoded: bytes) -> int:
    """Position of the first byte of Huffman data of a JPEG with one scan."""
    at = encoded.rindex(b"\xff\xda")
    return at + 2 + int.from_bytes(encoded[at + 2 : at + 4], "big")


def in_data(encoded: bytes, new: bytes) -> bytes:
    """Overwrites bytes in the middle of the Huffman data."""
    at = (scan_start(encoded) + len(encoded)) // 2
    while b"\xff" in encoded[at - 1 : at + len(new) + 1]:
        at += 1
    return encoded[:at] + new + encoded[at + len(new) :]


def without_adobe(encoded: bytes) -> bytes:
    at = encoded.index(b"\xff\xee")
    return encoded[:at] + encoded[at + 2 + int.from_bytes(encoded[at + 2 : at + 4], "big") :]


def rgba() -> Image.Image:
    alpha = np.linspace(0, 255, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint8)
    image = picture()
    image.putalpha(Image.fromarray(alpha))
    return image


def gif(frames: int = 1, **options) -> bytes:
    images = [picture().rotate(90 * number).quantize(32) for number in range(frames)]
    return save(images[0], "GIF", save_all=True, append_images=images[1:], **options)


def png_header(width: int, height: int) -> bytes:
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def bmp_32() -> bytes:
    rows = np.asarray(picture())[::-1, :, ::-1]
    body = np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=-1).tobytes()
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 32, 0, len(body), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54) + header + body


GOOD = {
    "RGB, chroma whole": lambda: jpeg(subsampling=0),
    "RGB, chroma halved across": lambda: jpeg(subsampling=1),
    "RGB, chroma halved both ways": lambda: jpeg(subsampling=2),
    # The same number of blocks in another order, so that the Huffman data stays valid.
    "RGB, chroma halved down": lambda: patched(jpeg(subsampling=1), 11, b"\x12"),
    "RGB, chroma quartered across": lambda: patched(jpeg(subsampling=2), 11, b"\x41"),
    "RGB, chroma quartered down": lambda: patched(jpeg(subsampling=2), 11, b"\x14"),
    "odd sides": lambda: save(picture(47, 61), subsampling=2),
    "progressive": lambda: jpeg(progressive=True),
    "restart markers": lambda: jpeg(restart_marker_blocks=3),
    "grey": lambda: save(picture().convert("L")),
    "grey with sampling factors": lambda: patched(save(picture().convert("L")), 11, b"\x22"),
    "CMYK of Adobe": lambda: save(picture().convert("CMYK"), quality=95),
    # Pillow stores CMYK inverted, as Adobe does.
    "CMYK": lambda: without_adobe(save(ImageChops.invert(picture().convert("CMYK")), quality=95)),
    # Any bytes are valid arithmetic codes.
    "arithmetic-coded": lambda: patched(jpeg(), 0, b"\xff\xc9"),
    "orientation in EXIF": lambda: jpeg(exif=exif(6)),
    "bytes behind the end": lambda: jpeg() + b"\0" * 100,
    "second picture behind the end": lambda: jpeg() + save(picture(8, 8)),
    "corrupt Huffman data": lambda: in_data(jpeg(), b"\x12\x34\x56\x78\x9a"),
    "cut, but with an end": lambda: jpeg()[:1200] + b"\xff\xd9",
    "1 x 1": lambda: save(picture(1, 1)),
    "1 x 200": lambda: save(picture(1, 200)),
    "200 x 1": lambda: save(picture(200, 1)),
    "3 x 5": lambda: save(picture(3, 5), subsampling=2),
    "PNG": lambda: save(picture(), "PNG"),
    "grey PNG": lambda: save(picture().convert("L"), "PNG"),
    "16-bit PNG": lambda: save(
        Image.fromarray(np.asarray(picture().convert("L")).astype(np.uint16) * 257), "PNG"
    ),
    "palette PNG": lambda: save(picture().quantize(32), "PNG"),
    "palette PNG of 4 bits": lambda: save(picture().quantize(16), "PNG"),
    "black and white PNG": lambda: save(picture().convert("1"), "PNG"),
    "transparent palette PNG": lambda: save(picture().quantize(32), "PNG", transparency=3),
    "alpha PNG": lambda: save(rgba(), "PNG"),
    "GIF": lambda: gif(),
    "animated GIF": lambda: gif(3, duration=40, loop=0),
    "transparent GIF": lambda: gif(transparency=7),
    "BMP": lambda: save(picture(), "BMP"),
    "BMP of 32 bits": bmp_32,
}

BAD = {
    "no bytes": lambda: b"",
    "one byte": lambda: b"\xff",
    "three bytes": lambda: b"\xff\xd8\xff",
    "text": lambda: b"these bytes are no image",
    "start and end": lambda: b"\xff\xd8\xff\xd9",
    "cut in the header": lambda: jpeg()[:200],
    "cut in the data": lambda: jpeg()[: int(len(jpeg()) * 0.6)],
    "cut before its end": lambda: jpeg()[:-2],
    "progressive and cut": lambda: jpeg(progressive=True)[:1200],
    "CMYK and cut": lambda: save(picture().convert("CMYK"))[:-300],
    "12 bits": lambda: patched(jpeg(), 4, b"\x0c"),
    "lossless": lambda: patched(jpeg(), 0, b"\xff\xc3"),
    "no height": lambda: patched(jpeg(), 5, b"\0\0"),
    "claims 64250 x 64250": lambda: patched(jpeg(), 5, struct.pack(">HH", 64250, 64250)),
    "claims one row too many": lambda: patched(jpeg(), 5, struct.pack(">HH", 1001, 100)),
    "PNG claims 64250 x 64250": lambda: png_header(64250, 64250) + b"\0" * 40,
    "PNG claims 2**32 - 1": lambda: png_header(2**32 - 1, 2**32 - 1),
    "GIF claims 65535 x 65535": lambda: gif()[:6] + b"\xff\xff\xff\xff" + gif()[10:],
    "BMP claims 64250 x 64250": lambda: save(picture(), "BMP")[:18] + struct.pack("<ii", 64250, -64250),
    "PNG cut in the header": lambda: save(picture(), "PNG")[:20],
    "PNG and cut": lambda: save(picture(), "PNG")[:-300],
    "GIF and cut": lambda: gif()[:-300],
    "GIF with a larger frame": lambda: gif()[:6] + struct.pack("<HH", 8, 8) + gif()[10:],
    "BMP and cut": lambda: save(picture(), "BMP")[:-300],
    "BMP with a palette": lambda: save(picture().quantize(32), "BMP"),
    "TIFF": lambda: save(picture(), "TIFF"),
}

RECOVERED = ("cut in the data", "cut before its end", "progressive and cut", "CMYK and cut")
"""Good where truncated images are recovered."""


@functools.cache
def decoders(options: DecodeOptions):
    """Both ways in graphs, as in a pipeline, traced once."""
    encoded, window = tf.TensorSpec([], tf.string), tf.TensorSpec([4], tf.int32)

    def part(encoded, window):
        with tf.control_dependencies([image_size(encoded, options)]):
            return decode_window(encoded, window, options)

    return (
        tf.function(lambda encoded: decode_image(encoded, options), input_signature=[encoded]),
        tf.function(part, input_signature=[encoded, window]),
        tf.function(lambda encoded: image_size(encoded, options), input_signature=[encoded]),
    )


def decode(encoded: bytes, options: DecodeOptions) -> np.ndarray | None:
    """Returns the whole image, or None if it is refused."""
    try:
        return decoders(options)[0](encoded).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def decode_part(encoded: bytes, window, options: DecodeOptions) -> np.ndarray | None:
    try:
        return decoders(options)[1](encoded, np.array(window, np.int32)).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def windows(height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Whole, corners, edges, on and off the borders of blocks of 8 and 16."""
    rows = [(0, height), (0, 1), (height - 1, 1), (height // 2, 1), (height // 3, (height + 2) // 3)]
    columns = [(0, width), (0, 1), (width - 1, 1), (width // 2, 1), (width // 3, (width + 2) // 3)]
    columns += [(16, 16), (15, 17), (17, 14), (8, 8), (9, 2)] if width >= 40 else []
    return [(top, left, h, w) for (top, h), (left, w) in itertools.product(rows, columns)]


def options(**changes) -> DecodeOptions:
    return DecodeOptions(**{"max_pixels": MAX_PIXELS, **changes})


OPTIONS = [
    options(),
    options(fancy_upscaling=False),
    options(recover_truncated=True),
    options(dct_method="INTEGER_ACCURATE"),
]


@pytest.mark.parametrize("decoding", OPTIONS, ids=["default", "plain", "recover", "accurate"])
@pytest.mark.parametrize("kind", GOOD)
def test_every_window_of_a_good_image_is_that_part_of_the_whole(kind, decoding):
    encoded = GOOD[kind]()
    whole = decode(encoded, decoding)
    assert whole is not None
    assert whole.dtype == np.uint8
    assert whole.shape == (*decoders(decoding)[2](encoded).numpy(), 3)
    # All of them for interpolated chroma and for repeated, where the window is decoded in another way.
    step = 1 if decoding in OPTIONS[:2] else 9
    for top, left, height, width in windows(*whole.shape[:2])[::step]:
        part = decode_part(encoded, (top, left, height, width), decoding)
        assert part is not None, (top, left, height, width)
        np.testing.assert_array_equal(
            part, whole[top : top + height, left : left + width], str((top, left, height, width))
        )


@pytest.mark.parametrize("decoding", OPTIONS[:3], ids=["default", "plain", "recover"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_image_is_refused_whole_and_in_every_window(kind, decoding):
    encoded = BAD[kind]()
    is_good = decoding.recover_truncated and kind in RECOVERED
    assert (decode(encoded, decoding) is not None) == is_good
    for window in ((0, 0, 1, 1), (0, 0, HEIGHT, WIDTH), (HEIGHT - 1, WIDTH - 1, 1, 1), (4, 4, 20, 20)):
        assert (decode_part(encoded, window, decoding) is not None) == is_good


# What Pillow makes of them. Its JPEG decoder has another DCT; CMYK is converted by another formula.
SEEN_ALIKE = [
    kind
    for kind in GOOD
    if "quartered" not in kind and "arithmetic" not in kind and "corrupt" not in kind and "cut" not in kind
]


@pytest.mark.parametrize("kind", SEEN_ALIKE)
def test_a_good_image_looks_as_in_another_decoder(kind):
    encoded = GOOD[kind]()
    image = Image.open(io.BytesIO(encoded))
    if image.mode == "I;16":
        image = Image.fromarray((np.asarray(image) // 256).astype(np.uint8))
    if kind == "CMYK":
        expected = np.asarray(picture()).astype(int)
    elif image.has_transparency_data:
        layer = image.convert("RGBA")
        expected = np.asarray(Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer))[..., :3]
    else:
        expected = np.asarray(image.convert("RGB"))
    difference = np.abs(decode(encoded, options()).astype(int) - expected)
    exact = image.format in ("PNG", "GIF", "BMP")
    assert difference.max() <= (1 if exact else 40)
    assert difference.mean() <= (0.1 if exact else 3)


def test_a_window_out_of_the_image_is_refused_never_mended():
    for decoding in OPTIONS:
        for window in ((0, 0, HEIGHT + 1, 4), (0, 1, 4, WIDTH), (-1, 0, 4, 4), (0, -1, 4, 4), (0, 0, 0, 4)):
            assert decode_part(GOOD["RGB, chroma halved both ways"](), window, decoding) is None


def test_the_limit_itself_is_allowed_and_one_pixel_more_is_not():
    encoded = jpeg()
    assert decode(encoded, options(max_pixels=HEIGHT * WIDTH)) is not None
    assert decode(encoded, options(max_pixels=HEIGHT * WIDTH - 1)) is None


def test_the_limit_comes_before_the_decoding():
    # 30,000 x 5,900 pixels would be half a gigabyte.
    encoded = patched(jpeg(), 5, struct.pack(">HH", 30_000, 5_900))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 100,000 pixels") as caught:
        decode_image(encoded, options())
    assert re.search("30000,? 5900", str(caught.value))


@pytest.mark.parametrize("kind", ["RGB, chroma whole", "cut in the data", "animated GIF", "text", "no bytes"])
def test_a_graph_and_eager_calls_agree(kind):
    encoded = {**GOOD, **BAD}[kind]()
    expected = decode(encoded, options())
    window = (3, 5, 20, 30)
    if expected is None:
        with pytest.raises(tf.errors.InvalidArgumentError):
            decode_image(tf.constant(encoded), options())
        with pytest.raises(tf.errors.InvalidArgumentError):
            image_size(tf.constant(encoded), options())
            decode_window(tf.constant(encoded), tf.constant(window), options())
        return
    np.testing.assert_array_equal(decode_image(tf.constant(encoded), options()), expected)
    part = decode_window(tf.constant(encoded), tf.constant(window), options())
    np.testing.assert_array_equal(part, expected[3:23, 5:35])


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "window"])
@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_both_ways_obey_both_policies(whole, policy):
    kinds = {**GOOD, **BAD}
    order = np.random.default_rng(0).permutation(list(kinds))
    images = tf.data.Dataset.from_tensor_slices([kinds[kind]() for kind in order])

    def prepare(encoded):
        if whole:
            return decode_image(encoded, options())
        size = image_size(encoded, options())
        return decode_window(encoded, tf.concat([[0, 0], (size + 1) // 2], axis=0), options())

    if policy == "fail":
        with pytest.raises(tf.errors.InvalidArgumentError):
            list(images.map(prepare, num_parallel_calls=2))
        return
    counter = SkipCounter()
    kept = list(counter.map(images, prepare, is_fresh=lambda _: True, parallel_calls=2))
    assert counter.count == len(BAD)
    assert len(kept) == len(GOOD)


@pytest.mark.parametrize("kind", {**GOOD, **BAD})
def test_the_checker_refuses_what_the_reader_refuses(kind):
    size, reason = try_image({**GOOD, **BAD}[kind](), options())
    assert (size is not None) == (kind in GOOD)
    assert (reason == "") == (kind in GOOD)


STRAY_MARKERS = {
    "reserved": b"\xff\x05\x01",
    "table": b"\xff\xc4\x00\x01",
    "scan": b"\xff\xda\x00\x03",
}


@pytest.mark.parametrize("marker", STRAY_MARKERS)
def test_the_one_difference_is_a_stray_marker_above_a_window_that_ends_before_the_last_row(marker):
    encoded = in_data(jpeg(), STRAY_MARKERS[marker])
    assert decode(encoded, options()) is None
    assert decode_part(encoded, (HEIGHT - 1, 0, 1, 1), options()) is None
    assert decode_part(encoded, (0, 0, HEIGHT - 1, WIDTH), options()) is not None


def has_stray_marker(encoded: bytes) -> bool:
    start = scan_start(encoded) if b"\xff\xda" in encoded else len(encoded)
    data = encoded[start:].removesuffix(b"\xff\xd9")
    return any(data[at] == 0xFF and data[at + 1] not in (0, 0xFF) for at in range(len(data) - 1))


SMALL = save(picture(20, 24), quality=60)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_changed_and_cut_jpegs_have_one_verdict_and_one_picture(data):
    changed = bytearray(SMALL)
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(SMALL) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(SMALL)), st.integers(0, len(SMALL))))
    encoded = bytes(changed[:length]) + data.draw(st.sampled_from([b"", b"\xff\xd9", b"\0"]))
    decoding = data.draw(st.sampled_from(OPTIONS[:3]))
    whole = decode(encoded, decoding)
    try:
        height, width = decoders(decoding)[2](encoded).numpy()
    except tf.errors.InvalidArgumentError:
        assert whole is None
        return
    top, left = data.draw(st.integers(0, int(height) - 1)), data.draw(st.integers(0, int(width) - 1))
    window = (
        top,
        left,
        data.draw(st.integers(1, int(height) - top)),
        data.draw(st.integers(1, int(width) - left)),
    )
    part = decode_part(encoded, window, decoding)
    if has_stray_marker(encoded):
        return
    assert (part is None) == (whole is None)
    if whole is not None:
        np.testing.assert_array_equal(part, whole[top : top + window[2], left : left + window[3]])
