"""What the random words of an example decide: one fixed position for each decision.

Everything that draws for the same example reads the same positions, so that the fused decode and the step by
step preprocessing draw the same crop, the same mirror image and the same colours. `draws` makes the words;
fewer words are a prefix of more.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.preprocessing import color, resize
from pipeline.preprocessing.draws import to_seed, to_uniform

MAX_BRIGHTNESS_DELTA = 32.0 / 255.0
"""Largest shift of brightness on pixels of 0 to 1; this and the ranges below: the reference trainer."""

SATURATION_RANGE = (0.5, 1.5)
MAX_HUE_DELTA = 0.2
CONTRAST_RANGE = (0.5, 1.5)

FLIP_WORD = 2
BRIGHTNESS_WORD = 3
CB_WORD = 4
CR_WORD = 5
SATURATION_WORD = CB_WORD  # only one of the two colour distortions draws
HUE_WORD = CR_WORD
CONTRAST_WORD = 6
ORDERING_WORD = 7
RESIZE_METHOD_WORD = 8
SIDE_WORD = 9
TOP_WORD = 10
LEFT_WORD = 11

ORDERINGS = len(color.ORDERINGS)
RESIZE_METHODS = len(resize.METHODS)
"""Choices that the two words have."""

WORDS = 12
"""Words an example, enough for every decision."""


def crop_seed(words: Any) -> Any:
    """Returns the key of the crop, int64 [..., 2].

    Args:
        words: uint64 [..., 2 or more], from `draws.example_bits`.
    """
    return to_seed(words[..., :2])


def is_flipped(words: Any) -> Any:
    """Returns whether the image is mirrored, bool [...]: of half of them the word's first bit is 0.

    Args:
        words: uint64 [..., 3 or more].
    """
    return to_uniform(words[..., FLIP_WORD]) < 0.5


def uniform_between(words: Any, position: int, low: float, high: float) -> Any:
    """Returns float32 [...] in [low, high), drawn by the word at `position`.

    Args:
        words: uint64 [..., more than `position`].
        position: one of this module's.
        low: smallest value.
        high: its bound above.
    """
    return low + (high - low) * to_uniform(words[..., position])


def choice(words: Any, position: int, count: Any) -> Any:
    """Returns int32 [...] in [0, count), drawn by the word at `position`.

    Args:
        words: uint64 [..., more than `position`].
        position: one of this module's.
        count: int or int32 [...], number of choices; each as likely as the others, to 2**-24.
    """
    scaled = tf.cast(to_uniform(words[..., position]), tf.float64) * tf.cast(count, tf.float64)
    return tf.cast(scaled, tf.int32)


def brightness(words: Any) -> Any:
    """Returns the shift of brightness on pixels of 0 to 1, float32 [...], up to 32 of 255 either way."""
    return uniform_between(words, BRIGHTNESS_WORD, -MAX_BRIGHTNESS_DELTA, MAX_BRIGHTNESS_DELTA)


def chroma(words: Any, cb_range: float, cr_range: float) -> tuple[Any, Any]:
    """Returns the shifts of blue and red chroma, float32 [...] each, up to `cb_range` and `cr_range`."""
    return (
        uniform_between(words, CB_WORD, -cb_range, cb_range),
        uniform_between(words, CR_WORD, -cr_range, cr_range),
    )


def color_changes(words: Any, fast_mode: bool) -> tuple[dict[str, Any], Any | None]:
    """Returns what `color.distort_color` takes: the changes, float32 [] each, and the ordering.

    Args:
        words: uint64 [..., WORDS].
        fast_mode: brightness and saturation only, in one order (None).
    """
    changes = {
        "brightness": brightness(words),
        "saturation": uniform_between(words, SATURATION_WORD, *SATURATION_RANGE),
    }
    if fast_mode:
        return changes, None
    changes["hue"] = uniform_between(words, HUE_WORD, -MAX_HUE_DELTA, MAX_HUE_DELTA)
    changes["contrast"] = uniform_between(words, CONTRAST_WORD, *CONTRAST_RANGE)
    return changes, choice(words, ORDERING_WORD, ORDERINGS)


def resize_method(words: Any) -> Any:
    """Returns the place in `resize.METHODS` of the method that is drawn, int32 []."""
    return choice(words, RESIZE_METHOD_WORD, RESIZE_METHODS)
