from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from trainer.losses import smoothed_cross_entropy, training_loss, weight_decay


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
    assert float(weight_decay(kernels)) == pytest.approx(4e-5 * (25 + 1) / 2)


def test_auxiliary_head_counts_four_tenths() -> None:
    labels, kernel = tf.constant([2]), tf.constant([100.0])
    loss = training_loss(labels, tf.zeros([1, 8]), tf.zeros([1, 8]), [kernel])
    assert float(loss) == pytest.approx(1.4 * math.log(8) + 0.2)
