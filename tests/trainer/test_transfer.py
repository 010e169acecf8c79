"""The copy to another device is tested with the loop, in a process that has a second device."""

from __future__ import annotations

import tensorflow as tf

from trainer.transfer import HOST, Transfer, transfer_to


def test_batch_for_the_host_is_handed_on_as_it_is_and_at_once() -> None:
    batch = {"image": tf.zeros([1, 2, 2, 3]), "label": tf.zeros([1]), "name": tf.constant(["a"])}
    arrived = tf.constant(12.5, tf.float64)
    result, transfer = transfer_to(HOST, batch, arrived)
    assert set(result) == set(batch)
    assert all(result[name] is batch[name] for name in batch)
    assert (float(transfer.arrived), float(transfer.started), float(transfer.probe)) == (12.5, 12.5, 0)


def test_transfer_without_a_copy_starts_when_it_arrives() -> None:
    transfer = Transfer.at(tf.constant(3.0, tf.float64)).after_dependencies()
    assert (float(transfer.arrived), float(transfer.started)) == (3, 3)
