"""Notes and lines of a training's progress, with a clock of the test's own."""

from __future__ import annotations

from bench.reporters.train_progress import TrainProgress


class Bar:
    def __init__(self):
        self.shown = []

    def update(self, share, note=""):
        self.shown.append((share, note))


class Clock:
    seconds = 100.0

    def __call__(self):
        return self.seconds


def test_lines_come_after_ten_seconds_and_then_each_minute_with_rates_and_time_left():
    clock, lines = Clock(), []
    progress = TrainProgress(Bar(), lines.append, 100, 300, clock)
    for seconds, step in ((101.0, 101), (110.0, 110), (140.0, 140), (170.0, 150)):
        clock.seconds = seconds
        progress.update(step, 2.5, 10 * step, 20 * step)
    # 10 steps in 10 s, 190 to go; then 50 in 70 s, 150 to go.
    assert lines == [
        "step 110 of 300, loss 2.5; 3 min 10 s left",
        "step 150 of 300, loss 2.5, 13.3 images/s (6.67 fresh); 3 min 30 s left",
    ]


def test_bar_has_the_share_and_rates_since_the_note_before():
    clock, bar = Clock(), Bar()
    progress = TrainProgress(bar, None, 0, 4, clock)
    clock.seconds = 101.0
    progress.update(1, None, 4, 8)
    clock.seconds = 103.0
    progress.update(2, 1.25, 8, 16)
    assert bar.shown == [
        (0.25, "step 1 of 4"),
        (0.5, "step 2 of 4, loss 1.25, 4.00 images/s (2.00 fresh)"),
    ]
