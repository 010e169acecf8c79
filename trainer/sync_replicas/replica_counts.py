"""What became of the batches of each replica."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Push:
    """One batch's gradients came in.

    Attributes:
        replica: whose they were, from 0.
        local_step: the global step for which they were computed.
        accepted: whether they count; otherwise they were stale and dropped.
        updated: whether they were the last ones that an update waited for, and it has been made.
    """

    replica: int
    local_step: int
    accepted: bool
    updated: bool


@dataclass(frozen=True)
class ReplicaCounts:
    """The account of one replica.

    Attributes:
        accepted: batches whose gradients went into an update.
        dropped: batches whose gradients came after the update of their step, and were dropped.
        stale_tokens: tokens of steps that were over when the replica took them; passed over without a batch.
    """

    accepted: int = 0
    dropped: int = 0
    stale_tokens: int = 0

    @property
    def batches(self) -> int:
        """Batches computed."""
        return self.accepted + self.dropped


@dataclass(frozen=True)
class ReplicaReport:
    """The account of a run.

    Attributes:
        updates: updates made; the global step moved by as many.
        replicas: the account of each replica.
        left_behind: replicas whose last batch had not come back when the time limit for the stop was over.
    """

    updates: int
    replicas: tuple[ReplicaCounts, ...]
    left_behind: tuple[int, ...] = ()

    @property
    def accepted(self) -> int:
        """Gradients that went into updates."""
        return sum(counts.accepted for counts in self.replicas)

    @property
    def dropped(self) -> int:
        """Gradients that were stale."""
        return sum(counts.dropped for counts in self.replicas)

    @property
    def stale_tokens(self) -> int:
        """Tokens that were stale."""
        return sum(counts.stale_tokens for counts in self.replicas)

    def __str__(self) -> str:
        """One line for a log."""
        shares = ", ".join(str(counts.accepted) for counts in self.replicas)
        text = (
            f"{self.updates} updates from {self.accepted} gradients (by replica: {shares}); {self.dropped} "
            f"stale gradients dropped, {self.stale_tokens} stale tokens passed over"
        )
        left = ", ".join(str(replica) for replica in self.left_behind)
        return f"{text}; still computing: replica {left}" if left else text
