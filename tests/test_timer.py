"""The interleaved timer: the order of calls, what counts, and what an interrupt keeps."""

from functools import partial

import pytest

from matroot import _timer as timer


@pytest.fixture
def clock(monkeypatch):
    """Time passes only in calls, which are given as seconds."""
    now = [0.0]

    class Work:
        def __init__(self, *takes):
            self.takes, self.calls = list(takes), 0

        def __call__(self):
            now[0] += self.takes[min(self.calls, len(self.takes) - 1)]
            self.calls += 1

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return Work


def test_the_order_is_reversed_after_every_round():
    order = []
    timer.time_interleaved({name: partial(order.append, name) for name in "abc"}, 2)
    turns = [name for name, before in zip(order, [None, *order], strict=False) if name != before]
    assert turns == list("abcbabc")


def test_slow_entries_have_few_turns_and_quick_ones_all(clock):
    works = {"slowest": clock(20.0), "slow": clock(1.5), "quick": clock(0.01)}
    timings = timer.time_interleaved(works, 8, time_budget=1.0)
    times = {"slowest": [20.0] * 2, "slow": [1.5] * 3, "quick": [0.01] * 24}
    for name, samples in timings.samples.items():
        assert samples.single == pytest.approx(times[name])
        assert not samples.back_to_back
    assert (works["slowest"].calls, works["slow"].calls) == (3, 4)
    assert not timings.failures


def test_compiling_is_not_timed(clock):
    timings = timer.time_interleaved({"compiled": clock(30.0, 0.2)}, 4, time_budget=10.0)
    assert timings.samples["compiled"].single == pytest.approx([0.2] * 4)


def test_one_turn_is_enough_where_that_is_asked_for(clock):
    work = clock(5.0)
    timings = timer.time_interleaved({"slow": work}, 8, time_budget=1.0, min_turns=1, back_to_back=True)
    assert timings.samples["slow"] == timer.Samples([5.0], [5.0])
    assert work.calls == 2


@pytest.mark.parametrize(("takes", "calls"), [(0.001, 20), (0.03, 3), (0.2, 2)])
def test_calls_in_a_row_take_about_a_tenth_of_a_second(clock, takes, calls):
    work = clock(takes)
    timings = timer.time_interleaved({"one": work}, 1, back_to_back=True)
    assert timings.samples["one"].back_to_back == pytest.approx([takes])
    singles = 1 + 3 if takes < timer.BRIEF else 1
    assert work.calls == 1 + singles + calls


def test_an_entry_that_fails_is_excluded_and_the_others_go_on():
    def broken():
        raise RuntimeError("out of luck\nand more")

    timings = timer.time_interleaved({"broken": broken, "good": list}, 3)
    assert timings.failures == {"broken": "RuntimeError: out of luck and more"}
    assert list(timings.samples) == ["good"]
    assert len(timings.samples["good"].single) == 9


def interrupted_at(call):
    """A function that Ctrl-C stops in this call."""
    calls = iter(range(1, call + 1))

    def work():
        if next(calls) == call:
            raise KeyboardInterrupt

    return work


def test_an_interrupt_carries_the_entries_with_enough_turns():
    """In the third round "done" is called first, and "stopped" for the tenth time: once, four times, four times."""
    with pytest.raises(timer.TimingInterrupted) as interrupt:
        timer.time_interleaved({"stopped": interrupted_at(10), "done": list}, 5)
    timings = interrupt.value.timings
    assert list(timings.samples) == ["done"]
    assert len(timings.samples["done"].single) == 9


def test_an_early_interrupt_carries_nothing():
    with pytest.raises(timer.TimingInterrupted) as interrupt:
        timer.time_interleaved({"other": list, "stopped": interrupted_at(6)}, 5)
    assert not interrupt.value.timings.samples


def test_progress_ends_at_one():
    seen = []
    timer.time_interleaved({"a": list, "b": list}, 3, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) == 8


def test_milliseconds_are_median_quartiles_and_least():
    found = timer.milliseconds([0.004, 0.001, 0.002, 0.003, 0.005])
    assert found == {"median": 3.0, "low": 1.5, "high": 4.5, "least": 1.0}
    assert timer.milliseconds([0.002]) == dict.fromkeys(("median", "low", "high", "least"), 2.0)


def test_quartiles_are_not_beyond_the_samples():
    assert timer.milliseconds([0.2, 0.1]) == {"median": 150.0, "low": 100.0, "high": 200.0, "least": 100.0}
