"""Predictions and labels of an evaluation's first examples, in words: the reference's `display_tensors`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from pipeline.element import IMAGE, LABEL
from trainer.incoming_images import prepare
from trainer.session import TrainSession

SHOWN_EXAMPLES = 8
"""Examples whose predictions and labels are displayed: a line each."""


def predictions(session: TrainSession, dataset: Any, average: bool, examples: int = SHOWN_EXAMPLES) -> str:
    """Returns a line an example: its label, the most likely class and the probability of either.

    Args:
        session: what was trained.
        dataset: of batches; the first one is looked at.
        average: whether to predict with the moving averages.
        examples: how many examples at most.
    """
    batch = next(iter(dataset))
    images = prepare(batch[IMAGE], None, session.options.layout)[:examples]
    labels = batch[LABEL].numpy()[:examples].tolist()
    strategy = session.placement.strategy
    averaged = average and session.average is not None
    with session.average.swapped(strategy) if averaged and session.average else nullcontext():
        logits = session.model(images, training=False).main
    probabilities = tf.nn.softmax(tf.cast(logits, tf.float32)).numpy()
    lines = []
    for number, (label, row) in enumerate(zip(labels, probabilities, strict=True)):
        best = int(row.argmax())
        lines.append(
            f"example {number}: label {label} ({row[label]:.3f}), predicted {best} ({row[best]:.3f})"
        )
    return "\n".join(lines)
