"""Shared by the tests of the trainers: one compiled network, and a check that no thread is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

NUM_CLASSES = 4
IMAGE_SIZE = 75


@pytest.fixture(scope="session")
def inception_trainer() -> Any:
    """The smallest network that trains for real; its loop compiles once, in about 20 CPU seconds."""
    from trainer.inception_trainer import InceptionOptions, InceptionTrainer

    return InceptionTrainer(
        InceptionOptions(
            batch_size=2,
            image_size=IMAGE_SIZE,
            width_multiplier=0.125,
            num_classes=NUM_CLASSES,
            optimizer="momentum",
            learning_rate=1e-6,
            steps_per_loop=3,
        )
    )


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in set(threading.enumerate()) - before if "pipebench" in thread.name]
    assert left == []


@pytest.fixture
def tiny_objects() -> Callable[..., dict[str, Any]]:
    """Returns a function that makes what a checkpoint saves, with every value equal to the one given."""
    import tensorflow as tf

    def make(value: float, size: int = 3) -> dict[str, Any]:
        model = tf.Module()
        model.weights = tf.Variable(tf.fill([size], float(value)))
        model.steps = tf.Variable(int(value), dtype=tf.int64)
        return {"model": model, "slots": [tf.Variable(float(value)), tf.Variable(-float(value))]}

    return make


@pytest.fixture
def files_at_most() -> Callable[[int], AbstractContextManager[None]]:
    """Returns a context in which no file of this process grows beyond a size: a disk that is full."""
    import resource

    @contextmanager
    def limited(size_bytes: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
