"""How many replicas there are, how many of them an update takes, and whose the tokens are."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_choice, check_integer
from echoing.errors import OptionError

TOKENS = ("own", "shared")
"""Whose the tokens of a step are: each replica has its share, or the first to come takes one."""


@dataclass(frozen=True)
class ReplicaPlan:
    """The numbers of synchronous training with backups, after `tf.compat.v1.train.SyncReplicasOptimizer`.

    - As many replicas as an update takes: ordinary synchronous training.
    - More replicas: the surplus are backups. The first gradients to come make the update; those that come
      later are stale and are dropped.
    - Fewer replicas: each computes several batches for one update.

    Attributes:
        replicas_to_aggregate: gradients that are averaged into one update.
        total_replicas: replicas that compute; None: as many as an update takes.
        initial_tokens: tokens of the first step beside the batch with which each replica begins; at least
            `replicas_to_aggregate - total_replicas`, without which the first update never comes. None: just
            that many, or none. More only lead to batches that come too late, so TensorFlow's default, which
            is `replicas_to_aggregate`, costs up to that many.
        tokens: one of `TOKENS`. `shared` is TensorFlow's rule: a replica that comes back early takes the
            token that another one leaves, so that fast replicas compute several batches of a step and slow
            ones none. `own`: a replica has its share of every step and no more, so that the batches of an
            update are the same ones every time, and a replica that comes back early waits for the next step
            instead of computing what will be stale. None: `own` if there are enough replicas for an update,
            else `shared`.

    Raises:
        OptionError: a number is out of range, or the tokens cannot be shared out evenly.
    """

    replicas_to_aggregate: int
    total_replicas: int | None = None
    initial_tokens: int | None = None
    tokens: str | None = None

    def __post_init__(self) -> None:
        check_integer("replicas_to_aggregate", self.replicas_to_aggregate, minimum=1)
        if self.total_replicas is not None:
            check_integer("total_replicas", self.total_replicas, minimum=1)
        if self.initial_tokens is not None:
            check_integer(
                "initial_tokens",
                self.initial_tokens,
                minimum=self.tokens_needed,
                advice=f"{self.replicas_to_aggregate} gradients make the first update, and {self.replicas} "
                "replicas bring one each without a token.",
            )
        if self.tokens is not None:
            check_choice("tokens", self.tokens, TOKENS)
        if self.own_tokens and self.tokens_per_step % self.replicas:
            raise OptionError(
                "tokens",
                self.tokens,
                f"shared, for {self.tokens_per_step} tokens a step cannot be dealt evenly to {self.replicas} "
                "replicas",
                "Or let replicas_to_aggregate be a multiple of total_replicas.",
            )

    @property
    def replicas(self) -> int:
        """Replicas that compute."""
        return self.replicas_to_aggregate if self.total_replicas is None else self.total_replicas

    @property
    def tokens_needed(self) -> int:
        """The fewest initial tokens with which the first update comes."""
        return max(0, self.replicas_to_aggregate - self.replicas)

    @property
    def tokens_at_start(self) -> int:
        """Initial tokens: those asked for, or the fewest."""
        return self.tokens_needed if self.initial_tokens is None else self.initial_tokens

    @property
    def tokens_per_step(self) -> int:
        """Tokens put out after each update, as in TensorFlow: enough for every replica and for an update."""
        return max(self.replicas, self.replicas_to_aggregate)

    @property
    def own_tokens(self) -> bool:
        """Whether each replica has tokens of its own."""
        if self.tokens is None:
            return self.replicas >= self.replicas_to_aggregate
        return self.tokens == "own"
