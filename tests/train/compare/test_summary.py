"""Figures of the table against those worked out by hand."""

from dataclasses import replace

import pytest
from rich.console import Console

from matroot.train.compare.findings import findings
from matroot.train.compare.plan import shared_fields
from matroot.train.compare.results import StepTime, Timing
from matroot.train.compare.summary import cells, heads, milliseconds, notes, spread, summarise
from matroot.train.compare.terminal import show
from matroot.train.recipes import RECIPES

from .examples import RUNS, comparison, run


def test_mean_and_deviation_by_hand():
    # Errors 2, 4 and 9: mean 5, squares of the distances 9 + 1 + 16 over 3 - 1.
    found = spread([0.98, 0.96, 0.91], "error")
    assert found.mean == pytest.approx(5)
    assert found.std == pytest.approx(13**0.5)
    assert found.runs == 3
    found = spread([0.5], "accuracy")
    assert (found.mean, found.std) == (50, None)
    assert spread([], "error") is None


def test_rows_in_the_papers_measure():
    rows = {row.preset: cells(row) for row in summarise(comparison()).rows}
    # Best accuracies 0.95 and 0.94, last ones 0.94 and 0.93; the deviation of two values is their distance over sqrt 2.
    assert rows["default"] == ("default", "5.50 ± 0.71", "6.50 ± 0.71", "2/2", "-", "2.50", "1.25", "10.0")
    assert rows["baseline"] == ("baseline", "7.00 ± 1.41", "8.50 ± 2.12", "2/2", "-", "2.00", "1.00", "-")
    assert rows["mpa-lya"] == ("mpa-lya", "6.00", "6.00", "1/2", "4.39 ± 0.09", "5.00", "2.50", "50.0")


def test_accuracy_where_the_paper_has_accuracy():
    recipe = {"model": "so_vit_7", "dataset": "imagenet", "epochs": 3}
    summary = summarise(comparison(name="sovit", recipe=recipe))
    assert heads(summary)[1] == "best accuracy %"
    assert cells(summary.row("mpa-lya"))[1:5] == ("94.00", "94.00", "1/2", "76.84")


def test_order_of_rows():
    presets = [row.preset for row in summarise(comparison(runs=RUNS[::-1])).rows]
    assert presets == ["baseline", "default", "mpa-lya"]


def test_other_data_are_named_beside_the_figures():
    recipe = {"model": "resnet18_dbn", "dataset": "digits", "epochs": 3}
    one = comparison(recipe=recipe, stand_in="Digits stand in for CIFAR-10.")
    said = " ".join(notes(one, summarise(one)))
    assert "ResNet-18 on CIFAR-10" in said
    assert "Digits stand in for CIFAR-10." in said
    assert "another experiment" in said
    same = comparison()
    assert "another experiment" not in " ".join(notes(same, summarise(same)))


def test_what_is_not_the_variants_is_named_beside_the_figures():
    short = RECIPES["dbn"]["short"]
    for recipe, said in (
        (short, "These runs follow the variant short with 30 epochs."),
        (replace(short, epochs=5, dataset="digits"), "These runs follow the variant short with 5 epochs."),
        (
            replace(short, milestones=(1, 2), precision="float32"),
            "These runs follow the variant short with 30 epochs, milestones [1, 2], precision float32.",
        ),
    ):
        one = comparison(recipe=shared_fields(recipe))
        assert said in notes(one, summarise(one))
    unknown = comparison(variant="of-another-version")
    assert "These runs follow the variant of-another-version with 3 epochs." in notes(unknown, summarise(unknown))


def test_a_share_that_noise_makes_negative_is_0():
    timing = Timing("cpu", {"ns": StepTime(1.0, 1.0, 1.0, "eager", -0.009)})
    (row,) = summarise(comparison(runs=(), timing=timing)).rows
    assert cells(row)[-1] == "0.0"


def test_presets_that_were_only_timed_have_no_runs():
    (row,) = summarise(comparison(runs=(), timing=Timing("cpu", {"ns": StepTime(1.0, 1.0, 1.0, "eager")}))).rows
    assert cells(row)[:4] == ("ns", "-", "-", "-")


def test_failures_are_named():
    one = comparison()
    assert "mpa-lya, seed 1, failed: the loss is not finite" in notes(one, summarise(one))
    assert "Of 6 runs 1 failed." in findings(one, summarise(one))


def test_steps_that_are_not_replayed_are_named():
    """And what their figures are, as the baseline is replayed."""
    one = comparison()
    (said,) = (note for note in notes(one, summarise(one)) if "replayed" in note)
    assert said.startswith("Steps are replayed from a CUDA graph, but for mpa-lya, which cannot be captured. Operation")
    assert "time over the baseline's is not the root's alone" in said
    eager = comparison(timing=Timing("cpu", {"ns": StepTime(1.0, 1.0, 1.0, "eager")}))
    assert not [note for note in notes(eager, summarise(eager)) if "replayed" in note]


def test_sentences():
    one = comparison()
    found = " ".join(findings(one, summarise(one)))
    assert "Lowest error of the best epoch: default with 5.50 ± 0.71 %; baseline is at the other end" in found
    # One run of mpa-lya is left; of the baseline there are two: sqrt(0.5/2 + 2/2) = 1.12 is the standard error.
    assert "default is 0.50 points better than mpa-lya" in found
    assert "a single run does not say whether that is noise" in found
    assert "default is 1.50 points better than baseline (5.50 ± 0.71 and 7.00 ± 1.41 %), within two" in found
    assert "Fastest with a root: default, 2.50 ms a step, 1.25 times the network without roots" in found
    assert "10.0 % with default and 50.0 % with mpa-lya" in found


def test_a_difference_beyond_noise():
    runs = tuple(
        run(preset, seed, a + 0.001 * seed) for preset, a in (("default", 0.9), ("mpa-lya", 0.8)) for seed in (0, 1)
    )
    one = comparison(runs=runs, timing=None)
    assert "default is 10.00 points better than mpa-lya" in findings(one, summarise(one))[1]
    assert "more than two standard errors" in findings(one, summarise(one))[1]


def test_nothing_is_said_of_nothing():
    one = comparison(runs=(), timing=None)
    assert findings(one, summarise(one)) == []
    assert summarise(one).rows == ()


@pytest.mark.parametrize(
    ("value", "text"), [(0.9444, "0.94"), (3.14159, "3.14"), (9.996, "10.0"), (31.41, "31.4"), (99.96, "100")]
)
def test_three_digits(value, text):
    assert milliseconds(value) == text


def test_the_table_fits_into_80_columns():
    console = Console(record=True, width=80)
    show(comparison(), console)
    text = console.export_text()
    assert "…" not in text
    for row in summarise(comparison()).rows:
        assert all(cell in text for cell in cells(row))
