"""An echo with its accounts, in loops and in Keras."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from echoing.elastic import ElasticOptions
from echoing.errors import OptionError
from echoing.keras_callback import EchoCallback
from echoing.measured_echo import MeasuredEcho


def examples(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.range(count).map(lambda x: (tf.fill([4], tf.cast(x, tf.float32)), x % 2))


def test_counts_are_exact_over_a_whole_stream():
    measured = MeasuredEcho(2.5, shuffle_buffer_size=10, seed=1, records=8)
    dataset = examples(8).apply(measured.echo).batch(4).apply(measured.measure)
    labels = []
    for _, label in dataset:
        labels += label.numpy().tolist()
        measured.on_step()
    report = measured.report()
    assert len(labels) == report.trained == 20
    assert (report.fresh, report.repeated, report.effective_epochs) == (8, 12, 1.0)
    assert measured.uncounted_batches == 0


def test_elements_come_back_as_they_were():
    dataset = examples(3)
    measured = MeasuredEcho(1)
    result = dataset.apply(measured.echo).apply(measured.measure)
    assert result.element_spec == dataset.element_spec
    assert int(result.cardinality()) == 3
    assert [int(label) for _, label in result] == [0, 1, 0]


def test_fixed_factor_is_none_on_every_step():
    measured = MeasuredEcho(2)
    for _ in examples(2).apply(measured.echo).apply(measured.measure):
        assert measured.on_step() is None


def test_elastic_factor_rises_while_the_loop_waits_and_reaches_the_dataset():
    ticks = iter(range(10_000))
    measured = MeasuredEcho(
        ElasticOptions(max_factor=4, settle_steps=0, window_steps=1), clock=lambda: float(next(ticks))
    )
    assert measured.controller is not None
    # Nothing but waiting: the meter says that each step's second was waited for.
    measured._meter.read = lambda: type("Reading", (), {"elements": 1, "wait_seconds": 0.9})()
    iterator = iter(examples(1000).repeat().apply(measured.echo).apply(measured.measure))
    for _ in range(60):
        next(iterator)
        factor = measured.on_step()
    assert factor == measured.variable.numpy() == 4.0
    assert measured.report().repeated > 0


def test_keras_fit_logs_the_accounts_of_each_epoch():
    measured = MeasuredEcho(2, records=16)
    dataset = examples(16).apply(measured.echo).batch(4).prefetch(2).apply(measured.measure)
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(dataset, epochs=2, callbacks=[EchoCallback(measured)], verbose=0).history
    assert history["echo_fresh"] == [16, 32]
    assert history["echo_trained"] == [32, 64]
    # Repeats stand side by side without a shuffle: 2 of 4 in each of 16 batches.
    assert history["echo_duplicates"] == [16, 32]
    assert "echo_factor" not in history


def test_keras_fit_with_an_elastic_factor_logs_it():
    measured = MeasuredEcho(ElasticOptions(max_factor=2))
    dataset = examples(8).apply(measured.echo).batch(4).apply(measured.measure)
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(dataset, callbacks=[EchoCallback(measured)], verbose=0).history
    assert 1.0 <= history["echo_factor"][0] <= 2.0


@pytest.mark.parametrize("options", [{"factor": 0.5}, {"factor": 2, "shuffle_buffer_size": -1}])
def test_bad_options_are_refused(options):
    with pytest.raises(OptionError):
        MeasuredEcho(**options)
