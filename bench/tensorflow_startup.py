"""Starts TensorFlow without its start-up notes, and with an allocator that suits images."""

from __future__ import annotations

import os
import re
import sys
import tempfile

from pipeline.allocator import keep_freed_memory

_NOISE = re.compile(
    r"All log messages before absl::InitializeLog"
    r"|Could not find cuda drivers on your machine"
    r"|failed call to cuInit"
    r"|This TensorFlow binary is optimized to use available CPU instructions"
    r"|To enable the following instructions:"
    r"|oneDNN custom operations are on"
)
"""What TensorFlow 2.21 writes on a machine without a GPU, where nothing is wrong."""


def start_tensorflow() -> None:
    """Imports TensorFlow and looks for devices; whatever else it writes meanwhile still reaches stderr.

    No log level leaves these notes out: they are written before the levels are read. So the file descriptor
    itself is diverted while TensorFlow starts.
    """
    # Before its threads start: each takes the setting over when it is made.
    keep_freed_memory()
    # Its notes later on are not the user's concern either; its errors are.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as diverted:
        os.dup2(diverted.fileno(), 2)
        try:
            import tensorflow as tf

            tf.config.list_physical_devices()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            diverted.seek(0)
            lines = diverted.read().decode(errors="replace").splitlines(keepends=True)
            sys.stderr.write("".join(line for line in lines if not _NOISE.search(line)))
            sys.stderr.flush()
