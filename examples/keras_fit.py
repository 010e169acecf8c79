"""Data echoing in `keras.Model.fit`: an elastic factor, and the accounts in the logs of each epoch.

Run it with `python examples/keras_fit.py`. The data is random and slow to read, so that the model would wait.
"""

from __future__ import annotations

import argparse
import time

import keras
import numpy as np
import tensorflow as tf

from echoing import EchoCallback, ElasticOptions, MeasuredEcho

BATCH_SIZE = 32


def slow_examples(records: int, milliseconds: int) -> tf.data.Dataset:
    """Returns numbered random images that take some time each, like a slow store."""

    def wait(index: np.int64) -> np.int64:
        time.sleep(milliseconds / 1000)
        return index

    def read(index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        index = tf.ensure_shape(tf.numpy_function(wait, [index], tf.int64), [])
        image = tf.random.stateless_uniform([16, 16, 3], [7, index])
        return image, tf.cast(tf.reduce_mean(image) > 0.5, tf.int32)

    return tf.data.Dataset.range(records).map(read)


def flip(image: tf.Tensor, tags: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mirrors half of the images: differently for each repeat, and reproducibly."""
    seed = tf.random.fold_in(tf.random.fold_in([7, 0], tags["example_id"]), tags["repeat_index"])
    return tf.image.stateless_random_flip_left_right(image, seed)


def main() -> None:
    """Trains for some epochs and prints what was fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--milliseconds", type=int, default=1, help="time to read one record")
    arguments = parser.parse_args()

    measured = MeasuredEcho(
        ElasticOptions(max_factor=8), shuffle_buffer_size=256, seed=1, records=arguments.records
    )
    dataset = (
        slow_examples(arguments.records, arguments.milliseconds)
        .repeat()
        .apply(measured.echo)
        .map(lambda tags, example: (tags, (flip(example[0], tags), example[1])))
        .batch(BATCH_SIZE, drop_remainder=True)
        .prefetch(2)
        .apply(measured.measure)
    )
    model = keras.Sequential(
        [keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(2)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    # An elastic echo has no fixed length: repeat for ever and say how long an epoch is.
    history = model.fit(
        dataset,
        epochs=arguments.epochs,
        steps_per_epoch=arguments.records // BATCH_SIZE,
        callbacks=[EchoCallback(measured)],
        verbose=0,
    )
    for epoch in range(arguments.epochs):
        logs = {name: round(float(values[epoch]), 3) for name, values in history.history.items()}
        print(f"epoch {epoch}: {logs}")
    print(f"effective epochs: {measured.report().effective_epochs}")


if __name__ == "__main__":
    main()
