import psutil
import pytest

from bench.pipelines.measure import compare_pipelines
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task

TASK = Task("nowhere", batch_size=7)
ENDLESS = ("while True:", "    yield task.batch_size")


def children():
    return set(psutil.Process().children())


def test_every_second_round_goes_the_other_way(scripted, quick):
    before = children()
    variants = [scripted("a", *ENDLESS), scripted("b", *ENDLESS)]
    told = []
    comparison = compare_pipelines(variants, TASK, 3, quick, lambda share, note: told.append((share, note)))
    assert [note for _, note in told] == [
        "starting a", "starting b",
        "round 1 of 3: a", "round 1 of 3: b",
        "round 2 of 3: b", "round 2 of 3: a",
        "round 3 of 3: a", "round 3 of 3: b",
    ]  # fmt: skip
    assert [share for share, _ in told] == [step / 8 for step in range(8)]
    assert [one.variant.name for one in comparison.measured] == ["a", "b"]
    assert [len(one.rounds) for one in comparison.measured] == [3, 3]
    assert not any(one.error for one in comparison.measured)
    assert children() == before


def test_variant_that_fails_is_left_out_and_the_others_go_on(scripted, quick):
    # Two batches to get ready, two in each round.
    dying = scripted("dying", "for _ in range(4): yield 1", "raise RuntimeError('enough')")
    broken = scripted("broken", "raise ImportError('no codec')")
    slow = Timing(0.0001, 0.0, 0.0, 60.0, 60.0, 10.0)
    comparison = compare_pipelines([broken, dying, scripted("fine", *ENDLESS)], TASK, 3, slow)
    errors = [one.error for one in comparison.measured]
    assert errors == ["ImportError: no codec", "RuntimeError: enough", ""]
    assert len(comparison.measured[0].rounds) == 0
    assert len(comparison.measured[1].rounds) <= 1
    assert len(comparison.measured[2].rounds) == 3


def test_interrupt_ends_all_processes(scripted, quick):
    before = children()

    def interrupt(share, note):
        if note.startswith("round"):
            assert len(children() - before) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_pipelines([scripted("a", *ENDLESS), scripted("b", *ENDLESS)], TASK, 1, quick, interrupt)
    assert children() == before
