"""What a machine without a TPU can show of the way to one; nothing here was run on a TPU."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from echoing.errors import OptionError
from trainer import tpu


@pytest.mark.parametrize("address", ["grpc://127.0.0.1:1", "grpc://127.0.0.1", "grpc://", "grpc://:x"])
def test_address_that_nobody_listens_at_is_refused_at_once(address: str) -> None:
    with pytest.raises(OptionError, match=f"tpu is '{address}'.*can be reached.*or `local` on a TPU VM"):
        tpu.connect(address, None, None)


def test_name_and_reason_of_a_tpu_that_fails_are_told() -> None:
    def fail() -> Any:
        raise ValueError("no such TPU.\nand a long story")

    with pytest.raises(OptionError, match=r"tpu is 'nope'.*no such TPU\. Give the name") as raised:
        tpu._within(5.0, "nope", fail)
    assert "long story" not in str(raised.value)
    assert isinstance(raised.value.__cause__, ValueError)


def test_tpu_that_does_not_answer_is_given_up() -> None:
    answered = threading.Event()
    try:
        with pytest.raises(OptionError, match=r"tpu is 'slow'.*no answer within 0.01 s"):
            tpu._within(0.01, "slow", answered.wait)
    finally:
        answered.set()


def test_strategy_of_a_tpu_that_answers_is_returned() -> None:
    assert tpu._within(5.0, "name", lambda: "strategy") == "strategy"


def test_port_that_is_open_passes_the_probe() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        tpu._probe(f"grpc://127.0.0.1:{server.getsockname()[1]}")


def test_a_wrong_name_is_refused_within_a_minute() -> None:
    assert tpu.PROBE_SECONDS <= tpu.CONNECT_SECONDS < 60


PROGRAM = """
import sys
from echoing.errors import OptionError
from trainer.strategies import StrategyOptions, make_strategy
try:
    make_strategy(StrategyOptions("tpu", tpu=sys.argv[1]))
except OptionError as error:
    print("REFUSED", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nope", "local"])
def test_tpu_that_is_not_there_is_an_error_that_names_it_and_the_way_out(name: str) -> None:
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=90)
    assert f"REFUSED tpu is '{name}', but must be a TPU that can be reached: " in done.stdout
    assert "pip install tensorflow-tpu" in done.stdout
