from __future__ import annotations

import threading

import pytest

from trainer.channel import Channel


def test_items_come_in_order_and_then_the_end() -> None:
    channel = Channel(2, ["a", "b"])
    channel.finish()
    assert list(channel) == ["a", "b"]


def test_newest_item_comes_first_when_asked_for() -> None:
    channel = Channel(3, [1, 2, 3], last_in_first_out=True)
    channel.finish()
    assert list(channel) == [3, 2, 1]


def test_error_comes_after_the_items_and_is_the_same_object() -> None:
    error = ValueError("bad")
    channel = Channel(2, [1])
    channel.finish(error)
    received = []
    with pytest.raises(ValueError) as raised:
        for item in channel:
            received.append(item)
    assert received == [1]
    assert raised.value is error


def test_writer_that_waits_for_room_goes_on_when_an_item_is_taken() -> None:
    channel = Channel(1, [1])
    writer = threading.Thread(target=lambda: (channel.put(2), channel.finish()))
    writer.start()
    assert list(channel) == [1, 2]
    writer.join()


def test_close_wakes_a_waiting_writer_and_drops_its_item() -> None:
    channel = Channel(1, [1])
    results: list[bool] = []
    writer = threading.Thread(target=lambda: results.append(channel.put(2)))
    writer.start()
    channel.close()
    writer.join()
    assert results == [False]
    assert list(channel) == []


def test_close_wakes_a_waiting_reader() -> None:
    channel: Channel[int] = Channel(1)
    results: list[list[int]] = []
    reader = threading.Thread(target=lambda: results.append(list(channel)))
    reader.start()
    channel.close()
    reader.join()
    assert results == [[]]


def test_closed_channel_hides_a_later_error() -> None:
    channel: Channel[int] = Channel(1)
    channel.close()
    channel.finish(ValueError("late"))
    assert list(channel) == []


def test_oldest_item_is_taken_only_if_it_is_accepted() -> None:
    channel = Channel(3, [1, 2])
    assert channel.take_if(lambda item: item == 2) is None
    assert channel.take_if(lambda item: item == 1) == 1
    assert channel.take_if(lambda item: item == 2) == 2
    assert channel.take_if(lambda item: True) is None


def test_taking_an_item_without_waiting_makes_room_for_a_writer() -> None:
    channel = Channel(1, [1])
    writer = threading.Thread(target=channel.put, args=(2,))
    writer.start()
    assert channel.take_if(lambda item: True) == 1
    writer.join()
    assert channel.take_if(lambda item: True) == 2


def test_channel_is_drained_when_nothing_is_left_and_nothing_comes() -> None:
    channel = Channel(2, [1])
    assert not channel.is_drained
    channel.finish()
    assert not channel.is_drained
    channel.take_if(lambda item: True)
    assert channel.is_drained
    closed: Channel[int] = Channel(2, [1])
    closed.close()
    assert closed.is_drained


def test_item_is_there_for_everyone_who_looks_after_it_was_made() -> None:
    channel: Channel[str] = Channel(1)
    made, found = threading.Event(), []

    def make() -> str:
        looker.start()
        made.set()
        looker.join(timeout=0.1)  # time to look too early
        return "item"

    looker = threading.Thread(target=lambda: (made.wait(), found.append(channel.take_if(lambda item: True))))
    assert channel.put_made(make)
    looker.join()
    assert found == ["item"]


def test_closed_channel_makes_no_item() -> None:
    channel: Channel[int] = Channel(1)
    channel.close()
    assert not channel.put_made(lambda: pytest.fail("made"))
