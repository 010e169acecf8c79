"""What a straggler costs synchronous replicas, with a backup and without: claims of `docs/replicas.md`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from trainer.optimizers import GradientDescent
from trainer.sync_replicas import Push, ReplicaPlan, SyncReplicas

REPLICAS = 4
INPUTS, UNITS, BATCH_SIZE = 16, 32, 32
"""The network whose gradients are computed, really but in about a millisecond."""

WARM_UP_UPDATES = 5
"""Updates at the start that no rate counts: they hold the tracing and the start of the threads."""

KEPT_PACE = 0.9
"""The least share of its pace that training with a backup must keep beside a straggler."""
LOST_PACE = 0.5
"""The largest share that training without a backup may keep: else the straggler was none."""

PLANS = (
    ("4 of 4", ReplicaPlan(4, 4)),
    ("3 of 4", ReplicaPlan(3, 4)),
    ("3 of 4 shared tokens", ReplicaPlan(3, 4, tokens="shared")),
)


@dataclass(frozen=True)
class Measurement:
    """One run.

    Attributes:
        steps_per_second: updates a second after the warm-up.
        updates: updates of the whole run.
        accepted: gradients that went into them.
        dropped: gradients that came too late.
        stale_tokens: tokens that were passed over.
        last_replica_accepted: of the accepted gradients, those of the last replica, which is the straggler.
    """

    steps_per_second: float
    updates: int
    accepted: int
    dropped: int
    stale_tokens: int
    last_replica_accepted: int


@dataclass(frozen=True)
class Pace:
    """One plan with and without a straggler, measured in turn, round by round.

    Attributes:
        name: of the plan.
        limit: share of its pace that it must keep (`keeps`) or must not exceed; None: nothing is promised.
        keeps: which of the two.
        equal: one measurement a round with four equal replicas.
        straggling: the same with a straggler.
    """

    name: str
    limit: float | None
    keeps: bool
    equal: list[Measurement] = field(default_factory=list)
    straggling: list[Measurement] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Pace with the straggler / pace without, round by round."""
        return [
            slow.steps_per_second / fast.steps_per_second
            for slow, fast in zip(self.straggling, self.equal, strict=True)
        ]

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def keeps_promise(self) -> bool:
        """Whether the median is on the right side of the limit."""
        if self.limit is None:
            return True
        return self.ratio >= self.limit if self.keeps else self.ratio <= self.limit


def compare_paces(rounds: int, steps: int, step_seconds: float, straggler_factor: float) -> list[Pace]:
    """Measures every plan with and without a straggler, in turn.

    Args:
        rounds: measurements of each.
        steps: updates a measurement, beside the warm-up.
        step_seconds: time that the emulated device of a replica takes for a batch, asleep. It is what makes
            four replicas equal on a machine with fewer cores than that.
        straggler_factor: how many times as long the device of the emulated straggler takes.
    """
    equal = [step_seconds] * REPLICAS
    straggling = [*equal[:-1], step_seconds * straggler_factor]
    limits = ((LOST_PACE, False), (KEPT_PACE, True), (None, True))
    paces = [Pace(name, *limit) for (name, _), limit in zip(PLANS, limits, strict=True)]
    network = Network()
    for index in range(rounds):
        for pace, (_, plan) in zip(paces, PLANS, strict=True):
            runs = [(pace.equal, equal), (pace.straggling, straggling)]
            for measurements, seconds in runs if index % 2 == 0 else reversed(runs):
                measurements.append(measure(network, plan, steps, seconds))
    return paces


class Network:
    """A small network and one batch of examples for it, with everything fixed."""

    def __init__(self) -> None:
        self.weights = [
            tf.Variable(tf.random.stateless_normal([INPUTS, UNITS], [1, 1]) / 4),
            tf.Variable(tf.random.stateless_normal([UNITS, 1], [1, 2]) / 6),
        ]
        self._inputs = tf.random.stateless_normal([BATCH_SIZE, INPUTS], [1, 3])
        self._targets = tf.reduce_sum(self._inputs, axis=1, keepdims=True)
        # Concrete: traced here, and not by four threads at the same time.
        self.gradients = tf.function(self._gradients, autograph=False).get_concrete_function()

    def _gradients(self) -> Any:
        with tf.GradientTape() as tape:
            predicted = tf.nn.relu(self._inputs @ self.weights[0]) @ self.weights[1]
            loss = tf.reduce_mean((predicted - self._targets) ** 2)
        return tape.gradient(loss, self.weights)


def measure(network: Network, plan: ReplicaPlan, steps: int, batch_seconds: Sequence[float]) -> Measurement:
    """Trains a network and returns what it took.

    Args:
        network: what is trained.
        plan: of the replicas.
        steps: updates to measure; the warm-up comes before them.
        batch_seconds: the time that each replica's emulated device takes for a batch.
    """

    def replica(seconds: float) -> Callable[[int], Any]:
        def gradients(step: int) -> Any:
            time.sleep(seconds)
            return network.gradients()

        return gradients

    updated_seconds: list[float] = []

    def note(push: Push) -> None:
        if push.updated:
            updated_seconds.append(time.monotonic())

    trainer = SyncReplicas(plan, network.weights, GradientDescent(network.weights), learning_rate=0.01)
    replicas = [replica(seconds) for seconds in batch_seconds]
    report = trainer.run(replicas, WARM_UP_UPDATES + steps, on_push=note)
    span = updated_seconds[-1] - updated_seconds[WARM_UP_UPDATES - 1]
    return Measurement(
        steps_per_second=steps / span,
        updates=report.updates,
        accepted=report.accepted,
        dropped=report.dropped,
        stale_tokens=report.stale_tokens,
        last_replica_accepted=report.replicas[-1].accepted,
    )
