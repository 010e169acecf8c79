"""Random fields with the spectrum of photographs (1/f "pink" textures), drawn through an inverse FFT.

Free of TensorFlow: worker processes import it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

Field = np.ndarray[Any, np.dtype[np.float32]]

EXPONENTS = (1.0, 1.1, 1.2)
"""Fall of the amplitude spectrum, amplitude = frequency ** -exponent. Photographs lie around 1.0 to 1.2
(Field, 1987, "Relations between the statistics of natural images and the response properties of cortical
cells"). A few fixed values, so that the spectra can be kept."""

_FFT_STEP = 64
"""Fields are drawn on sides rounded up to a multiple of this, then cut: sides with large prime factors are
several times slower, and fewer different sides mean fewer spectra to keep."""


def pink_field(generator: np.random.Generator, height: int, width: int, exponent: float) -> Field:
    """Returns a random texture with mean 0 and standard deviation 1.

    Args:
        generator: source of the randomness; the same state gives the same field.
        height: rows.
        width: columns.
        exponent: fall of the amplitude spectrum; 0 is white noise, larger is smoother.

    Returns:
        float32 `[height, width]`.
    """
    rows, columns = _round_up(height), _round_up(width)
    amplitude = _amplitude(rows, columns, exponent)
    noise = generator.standard_normal((*amplitude.shape, 2), dtype=np.float32)
    spectrum = noise.view(np.complex64)[..., 0] * amplitude
    field = np.fft.irfft2(spectrum, s=(rows, columns))[:height, :width].astype(np.float32, copy=False)
    field = field - field.mean(dtype=np.float32)
    deviation = float(field.std(dtype=np.float32))
    return field / np.float32(deviation) if deviation > 0 else field


@lru_cache(maxsize=128)  # about 0.4 MB each at 384 x 512, and 2 ms to make
def _amplitude(rows: int, columns: int, exponent: float) -> Field:
    longer = max(rows, columns)
    vertical = np.fft.fftfreq(rows).astype(np.float32)[:, None] * np.float32(longer)
    horizontal = np.fft.rfftfreq(columns).astype(np.float32)[None, :] * np.float32(longer)
    frequency = np.hypot(vertical, horizontal)
    frequency[0, 0] = 1.0
    amplitude = frequency ** np.float32(-exponent)
    amplitude[0, 0] = 0.0
    return amplitude


def _round_up(side: int) -> int:
    return -(-side // _FFT_STEP) * _FFT_STEP
