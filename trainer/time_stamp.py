"""The host's wall clock, read inside TensorFlow's functions."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tensorflow as tf

# TensorFlow tells whether its kernels have to be deterministic only by an inner name.
from tensorflow.python.framework import config


def time_stamp() -> Any:
    """Returns the wall-clock time when the result is computed, seconds since 1970, float64 [].

    `tf.timestamp`, which refuses to work once deterministic kernels are asked for; then Python's clock, which
    takes some 50 microseconds longer to read.
    """
    if not config.is_op_determinism_enabled():
        return tf.timestamp()
    seconds = tf.numpy_function(lambda: np.float64(time.time()), [], tf.float64)
    seconds.set_shape([])
    return seconds
