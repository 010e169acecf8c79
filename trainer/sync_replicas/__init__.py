"""Synchronous training on replica threads with backups, as TensorFlow 1's `SyncReplicasOptimizer` did it."""

from __future__ import annotations

from trainer.sync_replicas.replica_counts import Push, ReplicaCounts, ReplicaReport
from trainer.sync_replicas.replica_plan import TOKENS, ReplicaPlan
from trainer.sync_replicas.replica_run import ReplicasStalledError
from trainer.sync_replicas.sync_replicas import Averages, SyncReplicas

__all__ = [
    "TOKENS",
    "Averages",
    "Push",
    "ReplicaCounts",
    "ReplicaPlan",
    "ReplicaReport",
    "ReplicasStalledError",
    "SyncReplicas",
]
