"""The elastic echo of a run."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from bench.elastic_echo import ElasticEcho, RepeatedBatches, settle_steps
from pipeline.config import PipelineConfig


class ScriptedPipeline:
    """A pipeline whose dataset is four batches of two numbered examples."""

    def __init__(self, **config):
        self.config = PipelineConfig("data", echo_factor="elastic", keep_tags=True, batch_size=2, **config)
        self.echo_variable = tf.Variable(1.0) if self.config.echoes_examples else None

    def __call__(self):
        return (
            tf.data.Dataset.range(8)
            .batch(2)
            .map(lambda ids: {"image": ids, "label": ids, "repeat_index": tf.zeros_like(ids)})
        )


@pytest.mark.parametrize(
    "changes, steps",
    [({}, 2 + 3 + 32), ({"prefetch_batches": 0, "prefetch_examples": 0}, 3), ({"prefetch_examples": 1}, 6)],
)
def test_a_change_takes_the_batches_held_ready_the_infeed_and_the_examples_held_ready(changes, steps):
    assert settle_steps(PipelineConfig("data", batch_size=2, **changes)) == steps


@pytest.mark.parametrize("point", ["after_read", "after_decode", "after_augment"])
def test_waiting_raises_the_variable_of_an_echo_of_examples(point):
    pipeline = ScriptedPipeline(insert_point=point, max_echo_factor=3, prefetch_examples=0)
    elastic = ElasticEcho(pipeline, takes_iterables=True)
    for _ in range(100):
        elastic.observe(wait_seconds=0.9, busy_seconds=0.1, fresh=2, trained=2)
    assert pipeline.echo_variable.numpy() == 3.0
    trace = elastic.trace()
    assert trace[0] == (0, 1.0)
    assert trace[-1][1] == 3.0
    assert isinstance(elastic.dataset(), tf.data.Dataset)


@pytest.mark.parametrize("point", ["after_batch", "after_transfer"])
def test_an_echo_of_batches_has_nothing_to_control(point):
    elastic = ElasticEcho(ScriptedPipeline(insert_point=point), takes_iterables=True)
    elastic.observe(0.9, 0.1, 2, 2)
    assert elastic.trace() == []


def test_on_the_device_the_dataset_is_left_as_it_is():
    elastic = ElasticEcho(ScriptedPipeline(insert_point="after_transfer"), takes_iterables=True)
    assert isinstance(elastic.dataset(), tf.data.Dataset)


@pytest.mark.parametrize("takes_iterables", [True, False])
def test_batches_come_fresh_in_order_and_their_repeats_say_so(takes_iterables):
    pipeline = ScriptedPipeline(insert_point="after_batch", max_echo_factor=3)
    batches = list(ElasticEcho(pipeline, takes_iterables).dataset())
    fresh = [batch for batch in batches if np.asarray(batch["repeat_index"])[0] == 0]
    assert [np.asarray(batch["label"]).tolist() for batch in fresh] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert len(fresh) <= len(batches) <= 12
    last = None
    for batch in batches:
        repeat = int(np.asarray(batch["repeat_index"])[0])
        label = np.asarray(batch["label"]).tolist()
        assert repeat == 0 or label == last
        assert repeat <= 2
        last = label


def test_wrapped_batches_keep_their_specification():
    pipeline = ScriptedPipeline(insert_point="after_batch")
    dataset = ElasticEcho(pipeline, takes_iterables=False).dataset()
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == pipeline().element_spec


def test_bursts_of_records_lengthen_the_time_to_settle():
    config = PipelineConfig("data", batch_size=2, prefetch_batches=0, prefetch_examples=0)
    assert settle_steps(config, steps_per_loop=4) == settle_steps(config) + 8


def test_wait_for_a_batch_can_be_cancelled_from_another_thread():
    released = threading.Event()

    def source():
        yield {
            "image": np.zeros([1, 1, 1, 3], np.float32),
            "label": np.zeros(1, np.int32),
            "repeat_index": [0],
        }
        released.wait()

    batches = RepeatedBatches(_Cancellable(source(), released.set), max_factor=1)
    taken = []
    thread = threading.Thread(target=lambda: taken.extend(batches))
    thread.start()
    while not taken:
        thread.join(0.01)
    batches.cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert len(taken) == 1


class _Cancellable:
    def __init__(self, batches, cancel):
        self._batches = batches
        self.cancel = cancel

    def __iter__(self):
        return self._batches
