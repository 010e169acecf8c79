"""Who may do what when: the order of batches and updates, on a virtual clock."""

from __future__ import annotations

import pytest

from trainer.sync_replicas import Push, ReplicaCounts, ReplicaPlan

EQUAL, STRAGGLER = (1, 1, 1, 1), (1, 1, 1, 4)


@pytest.mark.parametrize(
    "plan, durations, update_times",
    [
        # All four make an update: it waits for the slowest.
        (ReplicaPlan(4), EQUAL, [1, 2, 3, 4, 5, 6, 7, 8]),
        (ReplicaPlan(4), STRAGGLER, [4, 8, 12, 16, 20, 24, 28, 32]),
        # Three of four: the straggler costs no time.
        (ReplicaPlan(3, 4), EQUAL, [1, 2, 3, 4, 5, 6, 7, 8]),
        (ReplicaPlan(3, 4), STRAGGLER, [1, 2, 3, 4, 5, 6, 7, 8]),
        (ReplicaPlan(3, 4, tokens="shared"), EQUAL, [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_backups_keep_the_pace_beside_a_straggler(conduct, plan, durations, update_times):
    assert conduct(plan, durations, 8).update_times == update_times


def test_all_of_four_count_each_batch_once_beside_a_straggler(conduct):
    run = conduct(ReplicaPlan(4), STRAGGLER, 3)
    assert [push.replica for push in run.pushes] == [0, 1, 2, 3] * 3
    assert [push.local_step for push in run.pushes] == [0] * 4 + [1] * 4 + [2] * 4
    assert [push.updated for push in run.pushes] == [False, False, False, True] * 3
    assert run.report.replicas == (ReplicaCounts(accepted=3),) * 4
    assert run.report.dropped == run.report.stale_tokens == 0
    # Each update adds (1 + 2 + 4 + 8) / 4.
    assert run.weight.numpy() == 3 * 15 / 4


def test_three_of_four_drop_the_straggler_and_pass_its_tokens_over(conduct):
    run = conduct(ReplicaPlan(3, 4), STRAGGLER, 5)
    assert run.pushes[:3] == [Push(0, 0, True, False), Push(1, 0, True, False), Push(2, 0, True, True)]
    # Its batch of step 0 is done at time 4, after the update at time 4: replicas 0 to 2 come first.
    late = [push for push in run.pushes if push.replica == 3]
    assert late == [Push(3, 0, False, False), Push(3, 4, False, False)]
    assert run.pushes.index(late[0]) == 12
    # Tokens 1, 2 and 3 were waiting for it beside token 4, for which it then computed.
    assert run.report.replicas == (*(ReplicaCounts(accepted=5),) * 3, ReplicaCounts(0, 2, 3))
    assert run.report.updates == 5
    assert run.weight.numpy() == pytest.approx(5 * (1 + 2 + 4) / 3, rel=1e-6)


def test_equal_replicas_with_a_backup_drop_one_batch_an_update(conduct):
    run = conduct(ReplicaPlan(3, 4), EQUAL, 4)
    assert [push.replica for push in run.pushes if not push.accepted] == [3, 3, 3, 3]
    assert (run.report.accepted, run.report.dropped, run.report.stale_tokens) == (12, 4, 0)


def test_shared_tokens_let_fast_replicas_compute_several_batches_of_a_step(conduct):
    # Four tokens a step, and the straggler takes none for three of them: some of them lead to stale batches.
    run = conduct(ReplicaPlan(3, 4, tokens="shared"), (2, 2, 3, 100), 3)
    assert run.pushes[:4] == [
        Push(0, 0, True, False),  # time 2: no token of step 0 is left, all began without one
        Push(1, 0, True, False),
        Push(2, 0, True, True),  # time 3: step 1 begins with four tokens
        Push(0, 1, True, False),  # time 5: takes the fourth token of step 1
    ]
    assert run.pushes[4:7] == [
        Push(1, 1, True, False),
        Push(2, 1, True, True),  # time 6
        Push(0, 1, False, False),  # time 7: its second batch of step 1 comes too late
    ]
    assert run.update_times == [3, 6, 9]
    assert run.report.updates == 3


def test_fewer_replicas_than_gradients_compute_several_batches_an_update(conduct):
    run = conduct(ReplicaPlan(4, 2), (1, 3), 3)
    # Four batches an update in any case, three of the fast one: at times 1, 2, 3 and one at 3.
    assert [push.replica for push in run.pushes[:4]] == [0, 0, 0, 1]
    assert run.report.accepted == 12
    assert run.report.dropped == run.report.stale_tokens == 0
    assert run.report.updates == 3


def test_own_tokens_make_fewer_replicas_share_evenly(conduct):
    run = conduct(ReplicaPlan(4, 2, tokens="own"), (1, 3), 3)
    assert run.update_times == [6, 12, 18]
    assert run.report.replicas == (ReplicaCounts(accepted=6),) * 2
    assert run.weight.numpy() == 3 * (1 + 1 + 2 + 2) / 4


def test_surplus_initial_tokens_only_lead_to_batches_that_come_too_late(conduct):
    run = conduct(ReplicaPlan(2, 2, initial_tokens=2, tokens="own"), (1, 1), 2)
    # At time 1 replica 0 goes on with its surplus token; replica 1 brings the update and passes its own over.
    assert run.pushes[:3] == [Push(0, 0, True, False), Push(1, 0, True, True), Push(0, 0, False, False)]
    assert run.report.dropped == 1
    assert run.report.stale_tokens == 1
    assert run.report.updates == 2
