from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from trainer.losses import example_losses, smoothed_cross_entropy, training_loss, weight_penalty


def test_equal_logits_give_the_logarithm_of_the_number_of_classes() -> None:
    loss = smoothed_cross_entropy(tf.constant([0, 3]), tf.zeros([2, 4]))
    assert float(loss) == pytest.approx(math.log(4))


def test_smoothing_spreads_a_tenth_over_all_classes() -> None:
    logits = np.array([[2.0, 0.0, -1.0]])
    log_probabilities = logits - np.log(np.exp(logits).sum())
    targets = np.array([[0.1 / 3, 0.9 + 0.1 / 3, 0.1 / 3]])
    loss = smoothed_cross_entropy(tf.constant([1]), tf.constant(logits, tf.float32))
    assert float(loss) == pytest.approx(-(targets * log_probabilities).sum(), rel=1e-6)


def test_smoothing_equals_tensorflow_1s() -> None:
    logits = tf.random.stateless_normal([5, 7], [1, 2])
    labels = tf.constant([0, 6, 3, 3, 1])
    expected = tf.compat.v1.losses.softmax_cross_entropy(tf.one_hot(labels, 7), logits, label_smoothing=0.1)
    assert float(smoothed_cross_entropy(labels, logits)) == pytest.approx(float(expected), rel=1e-6)


def test_weight_decay_is_half_the_sum_of_squares_times_its_factor() -> None:
    kernels = [tf.constant([3.0, 4.0]), tf.constant([[1.0]])]
    assert float(weight_penalty(kernels)) == pytest.approx(4e-5 * (25 + 1) / 2)


def test_auxiliary_head_counts_four_tenths() -> None:
    labels, kernel = tf.constant([2]), tf.constant([100.0])
    loss = training_loss(labels, tf.zeros([1, 8]), tf.zeros([1, 8]), [kernel])
    assert float(loss) == pytest.approx(1.4 * math.log(8) + 0.2)


def test_every_option_of_the_loss_counts_as_in_numpy() -> None:
    generator = np.random.default_rng(1)
    main, auxiliary = generator.normal(size=(2, 4, 6)).astype(np.float32)
    kernel = generator.normal(size=(3, 2)).astype(np.float32)
    labels = np.array([5, 0, 2, 2])

    def cross_entropy(logits: Any) -> Any:
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        targets = np.full((4, 6), 0.3 / 6)
        targets[np.arange(4), labels] += 0.7
        return -(targets * np.log(probabilities)).sum(axis=1).mean()

    expected = cross_entropy(main) + 0.25 * cross_entropy(auxiliary) + 0.01 * (kernel**2).sum() / 2
    loss = training_loss(
        tf.constant(labels),
        tf.constant(main),
        tf.constant(auxiliary),
        [tf.constant(kernel)],
        label_smoothing=0.3,
        auxiliary_weight=0.25,
        weight_decay=0.01,
    )
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_network_without_auxiliary_head_has_one_cross_entropy() -> None:
    loss = training_loss(tf.constant([2]), tf.zeros([1, 8]), None, [tf.constant([100.0])])
    assert float(loss) == pytest.approx(math.log(8) + 0.2)


def test_no_weight_decay_and_no_kernels_leave_the_cross_entropy() -> None:
    labels, logits = tf.constant([2]), tf.zeros([1, 8])
    decay_off = training_loss(labels, logits, None, [tf.constant([100.0])], weight_decay=0)
    assert float(decay_off) == pytest.approx(math.log(8))
    assert float(training_loss(labels, logits, None, [])) == pytest.approx(math.log(8))


def test_no_smoothing_gives_the_logarithm_of_the_labels_probability() -> None:
    loss = smoothed_cross_entropy(tf.constant([0]), tf.constant([[math.log(3), 0.0]]), label_smoothing=0)
    assert float(loss) == pytest.approx(math.log(4 / 3))


def test_example_that_fills_up_has_no_loss_and_no_gradient_whatever_it_holds() -> None:
    logits = tf.Variable([[0.0, 0.0], [math.nan, 1.0], [5.0, 5.0]])
    with tf.GradientTape() as tape:
        losses = example_losses(tf.constant([0, -1, 1]), logits, mask=tf.constant([True, False, False]))
    assert losses.numpy().tolist() == pytest.approx([math.log(2), 0, 0])
    assert tape.gradient(losses, logits).numpy()[2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("option", "value"),
    [("label_smoothing", 1.1), ("auxiliary_weight", -0.1), ("weight_decay", math.nan)],
)
def test_option_out_of_range_is_refused_by_name(option: str, value: float) -> None:
    with pytest.raises(OptionError, match=option):
        training_loss(tf.constant([0]), tf.zeros([1, 2]), None, [], **{option: value})
