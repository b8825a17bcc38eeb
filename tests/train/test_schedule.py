"""Learning rates against closed forms and torch's own schedulers."""

import math

import pytest
import torch

from matroot.train.schedule import learning_rate

from .tiny import tiny_recipe


def rates(recipe, steps_per_epoch):
    return [learning_rate(recipe, step, steps_per_epoch) for step in range(recipe.epochs * steps_per_epoch)]


def test_steps_multiply_after_milestones():
    """The published 350 epochs: 100 of each rate, and 50 of the last."""
    found = rates(tiny_recipe(epochs=350, schedule="steps", milestones=(100, 200, 300)), 2)
    expected = [0.1] * 200 + [0.01] * 200 + [0.001] * 200 + [0.0001] * 100
    assert found == pytest.approx(expected, rel=1e-12)


def test_cosine_rises_linearly_and_ends_near_its_end():
    found = rates(tiny_recipe(epochs=10, schedule="cosine", warmup_epochs=2, final_lr=0.02), 5)
    assert found[:10] == pytest.approx([0.1 * k / 10 for k in range(1, 11)])
    assert found[10] == pytest.approx(0.1)
    assert found[30] == pytest.approx(0.06)  # half way
    assert found[49] == pytest.approx(0.02 + 0.04 * (1 - math.cos(math.pi / 40)))
    assert found[10:] == sorted(found[10:], reverse=True)


def test_cosine_stays_at_its_end():
    """The published 300 + 10 epochs of transformers."""
    found = rates(tiny_recipe(epochs=31, schedule="cosine", warmup_epochs=1, cooldown_epochs=1, final_lr=0.02), 4)
    short = rates(tiny_recipe(epochs=30, schedule="cosine", warmup_epochs=1, final_lr=0.02), 4)
    assert found == [*short, *[0.02] * 4]


@pytest.mark.parametrize(("epochs", "steps"), [(1, 1), (1, 2), (1, 7), (5, 13), (30, 8)])
def test_one_cycle_is_torchs(epochs, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    found = rates(tiny_recipe(epochs=epochs), steps)
    if epochs * steps == 1:  # torch divides by zero there
        assert found == pytest.approx([0.1 / 25e4])
        return
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=epochs * steps, cycle_momentum=False)
    expected = []
    for _ in found:
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        if len(expected) < len(found):
            scheduler.step()
    assert found == pytest.approx(expected, rel=1e-9)
