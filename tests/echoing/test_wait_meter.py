"""Waiting of a dataset's consumer."""

from __future__ import annotations

import threading

import tensorflow as tf

from echoing.wait_meter import WaitMeter


def test_elements_structure_and_length_stay_as_they_are():
    dataset = tf.data.Dataset.range(4).map(lambda x: {"a": x, "b": (x, tf.strings.as_string(x))})
    measured = dataset.apply(WaitMeter())
    assert measured.element_spec == dataset.element_spec
    assert int(measured.cardinality()) == 4
    assert [int(element["a"]) for element in measured] == [0, 1, 2, 3]


def test_each_reading_holds_what_came_since_the_last():
    meter = WaitMeter()
    iterator = iter(tf.data.Dataset.range(5).apply(meter))
    next(iterator)
    next(iterator)
    assert meter.read().elements == 2
    next(iterator)
    assert meter.read().elements == 1
    assert meter.read() == (0, 0.0)


def test_waiting_for_a_blocked_source_is_measured_and_the_consumers_own_time_is_not():
    released = threading.Event()
    waited = []

    def source():
        yield 0
        released.wait()
        yield 1

    meter = WaitMeter()
    dataset = tf.data.Dataset.from_generator(source, output_signature=tf.TensorSpec([], tf.int64))
    iterator = iter(dataset.apply(meter))
    next(iterator)
    meter.read()
    clock = tf.timestamp
    begun = clock()
    timer = threading.Timer(0.3, released.set)
    timer.start()
    next(iterator)
    span = float(clock() - begun)
    waited = meter.read().wait_seconds
    # Nearly all of the span was waiting; only relations of one run are compared, no absolute times.
    assert 0.5 * span <= waited <= span


def test_nothing_is_asked_for_before_the_consumer_asks():
    asked = tf.Variable(0)

    def note(x):
        with tf.control_dependencies([asked.assign_add(1)]):
            return tf.identity(x)

    iterator = iter(tf.data.Dataset.range(100).map(note).apply(WaitMeter()))
    for _ in range(3):
        next(iterator)
    assert int(asked) == 3
