"""Data echoing in a training loop of one's own: an exact fractional factor, accounts, and a checkpoint.

Run it with `python examples/custom_loop.py`.
"""

from __future__ import annotations

import argparse
import tempfile

import tensorflow as tf

import echoing


def make_dataset() -> tf.data.Dataset:
    """Returns numbers with their squares, each used one and a half times."""
    return (
        tf.data.Dataset.range(1000)
        .map(lambda x: (tf.cast(x, tf.float32) / 1000, tf.cast(x * x, tf.float32) / 1_000_000))
        .apply(echoing.echo(1.5, shuffle_buffer_size=200, seed=1))
        .batch(50)
        .prefetch(2)
    )


def main() -> None:
    """Fits a parabola, stops in the middle, and goes on from the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="steps before the stop")
    arguments = parser.parse_args()

    weights = tf.Variable([0.0, 0.0, 0.0])

    @tf.function
    def train(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            predicted = weights[0] + weights[1] * x + weights[2] * x * x
            loss = tf.reduce_mean((predicted - y) ** 2)
        weights.assign_sub(0.5 * tape.gradient(loss, weights))
        return loss

    iterator = iter(make_dataset())
    checkpoint = tf.train.Checkpoint(weights=weights, iterator=iterator)
    for _ in range(arguments.steps):
        train(*next(iterator))
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/checkpoint")
        rest = [float(train(*batch)) for batch in iterator]

        # A restarted process builds the same dataset and restores its position, within repeats and shuffle.
        iterator = iter(make_dataset())
        tf.train.Checkpoint(weights=weights, iterator=iterator).restore(path)
        again = [float(train(*batch)) for batch in iterator]
    print(f"{arguments.steps} steps, then {len(rest)} more; resumed exactly: {rest == again}")
    print(f"loss at the end: {again[-1]:.6f}")


if __name__ == "__main__":
    main()
