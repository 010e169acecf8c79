"""Feeds of several replicas are tested in `test_session_replicas`, in processes that have several devices."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.feed import DeviceFeed, any_size, as_feed, batch_axis, images_shape
from trainer.transfer import HOST


def test_examples_stand_first_or_last() -> None:
    assert (batch_axis("nhwc"), batch_axis("hwcn")) == (0, 3)
    assert images_shape(8, "nhwc").as_list() == [None, 8, 8, 3]
    assert images_shape(8, "hwcn").as_list() == [8, 8, 3, None]


@pytest.mark.parametrize(("axis", "expected"), [(0, [None, 4, 3]), (2, [2, 4, None])])
def test_size_is_left_open_along_one_axis_only(axis: int, expected: list[int | None]) -> None:
    assert any_size(tf.TensorShape([2, 4, 3]), axis).as_list() == expected


def test_size_of_a_scalar_and_of_an_unknown_shape_stay_as_they_are() -> None:
    assert any_size(tf.TensorShape([]), 0).as_list() == []
    assert any_size(tf.TensorShape(None), 0).rank is None


def test_name_of_a_device_stands_for_its_feed() -> None:
    feed = as_feed(HOST)
    assert isinstance(feed, DeviceFeed) and feed.parts == 1
    assert as_feed(feed) is feed


@pytest.mark.parametrize(("layout", "shape"), [("nhwc", (2, 4, 4, 3)), ("hwcn", (4, 4, 3, 2))])
def test_room_takes_batches_of_any_size_along_their_axis(layout: str, shape: tuple[int, ...]) -> None:
    axis = batch_axis(layout)
    room = DeviceFeed(HOST).room(any_size(tf.TensorShape(shape), axis), tf.uint8, axis)
    for examples in (2, 5, 1):
        images = np.full([examples if place == axis else size for place, size in enumerate(shape)], 7)
        room.assign(tf.constant(images, tf.uint8))
        np.testing.assert_array_equal(room.use(), images)
    room.clear()
    assert room.read_value().shape[axis] == 0


def test_loss_of_one_device_is_there_once_it_is_done() -> None:
    assert DeviceFeed(HOST).done(tf.constant(1.5)).numpy().tolist() == [1.5, 1.5]
