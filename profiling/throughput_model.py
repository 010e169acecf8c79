"""The throughput model: how many fresh and trained examples a second an echo factor gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

from echoing.checks import check_integer, check_number
from echoing.echo_factor import EchoFactor


@dataclass(frozen=True)
class ThroughputModel:
    """Costs per example at one insertion point, and the rates that follow.

    The fresh rate at echo factor e is the least of what each resource allows:
    `min(cores / (c_up + e c_down), 1 / s, 1 / (e x), 1 / (e d))`. Where the two sides share no cores this is
    the max(t_up, e t_down) of Choi et al. (2019), arXiv 1907.05550, section 2; with shared cores the
    downstream work of the repeats is paid from what upstream has.

    Attributes:
        upstream_cpu_seconds: CPU time upstream of the echo, per fresh example.
        downstream_cpu_seconds: CPU time downstream on the host, per used example.
        storage_seconds: time to read one fresh example, whatever the cores do.
        transfer_seconds: time to move one used example to the device.
        device_seconds: device time per used example.
        cores: processor cores that both sides share.
    """

    upstream_cpu_seconds: float
    downstream_cpu_seconds: float = 0.0
    storage_seconds: float = 0.0
    transfer_seconds: float = 0.0
    device_seconds: float = 0.0
    cores: int = 1

    def __post_init__(self) -> None:
        """Checks that no cost is negative.

        Raises:
            OptionError: a negative cost, or no core.
        """
        for name in (
            "upstream_cpu_seconds",
            "downstream_cpu_seconds",
            "storage_seconds",
            "transfer_seconds",
            "device_seconds",
        ):
            check_number(name, getattr(self, name), minimum=0)
        check_integer("cores", self.cores, minimum=1)

    def fresh_examples_per_second(self, factor: object) -> float:
        """Returns the fresh rate f(e); infinite where nothing costs anything.

        Args:
            factor: the echo factor, >= 1.
        """
        echo = float(EchoFactor.parse(factor))
        seconds = max(
            (self.upstream_cpu_seconds + echo * self.downstream_cpu_seconds) / self.cores,
            self.storage_seconds,
            echo * self.transfer_seconds,
            echo * self.device_seconds,
        )
        return 1.0 / seconds if seconds > 0 else math.inf

    def trained_examples_per_second(self, factor: object) -> float:
        """Returns the trained rate e f(e).

        Args:
            factor: the echo factor, >= 1.
        """
        return float(EchoFactor.parse(factor)) * self.fresh_examples_per_second(factor)
