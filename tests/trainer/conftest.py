"""Shared by the tests of the trainers: one compiled network, and a check that no thread is left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
