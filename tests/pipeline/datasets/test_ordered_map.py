import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.datasets.ordered_map import available_cores, ordered_map


def test_results_come_in_the_order_of_the_items_whatever_finishes_first() -> None:
    second_done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second_done.wait(10)
        if item == 1:
            second_done.set()
        return item * 10

    with ThreadPoolExecutor(2) as executor:
        assert list(ordered_map(executor, work, range(5), in_flight=4)) == [0, 10, 20, 30, 40]


def test_items_are_taken_only_as_results_are_consumed() -> None:
    taken: list[int] = []

    def items():  # type: ignore[no-untyped-def]
        for item in range(100):
            taken.append(item)
            yield item

    with ThreadPoolExecutor(2) as executor:
        results = ordered_map(executor, lambda item: item, items(), in_flight=3)
        assert next(results) == 0
        assert len(taken) == 4  # three in flight and the one that waits for a place
        results.close()  # type: ignore[attr-defined]
    assert len(taken) == 4


def test_an_exception_comes_in_the_place_of_its_result() -> None:
    def work(item: int) -> int:
        if item == 2:
            raise ValueError("two")
        return item

    with ThreadPoolExecutor(2) as executor:
        results = ordered_map(executor, work, range(5), in_flight=4)
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(ValueError, match="two"):
            next(results)


def test_no_items_give_no_results() -> None:
    with ThreadPoolExecutor(1) as executor:
        assert list(ordered_map(executor, str, [], in_flight=1)) == []


def test_at_least_one_core_is_available() -> None:
    assert available_cores() >= 1
