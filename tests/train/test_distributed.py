"""Several processes train as one: the same weights, whatever their number and however parameters are sharded."""

import copy
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy, gelu
from torch.nn.parallel import DistributedDataParallel

from matroot._terminal import CommandError
from matroot.nn import CovariancePool, DecorrelatedBatchNorm2d, SecondOrderHead
from matroot.train.distributed import (
    VARIABLES,
    Ranks,
    barrier,
    from_main,
    load_whole_state,
    parallel,
    start,
    stop,
    sum_over_ranks,
    synchronise,
    whole_state,
)
from matroot.train.recipe import Recipe

from .ranks import PATIENCE, on_ranks

CPU = torch.device("cpu")
ALONE = Ranks(0, 1, 0, CPU)
BATCH, STEPS = 16, 3
RECIPE = Recipe(
    model="tiny", dataset="digits", epochs=1, batch_size=BATCH, image_size=6, lr=0.1, weight_decay=0.0, schedule="steps"
)
TOLERANCE = 1e-13
"""Of float64 weights of size 1 after 6 steps. Sums in another order differ by a few eps = 2e-16; whitening and the
covariance root, of condition numbers about 10, and a few small steps magnify that by less than 100."""


def convolutional():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        DecorrelatedBatchNorm2d(6, eps=1e-2),
        nn.ReLU(),
        nn.Conv2d(6, 8, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        CovariancePool(8, 4),
        nn.Linear(10, 5),
    )
    return network.double().to(memory_format=torch.channels_last)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, tokens):
        return tokens + self.second(gelu(self.first(self.norm(tokens))))


class Transformer(nn.Module):
    """The parts of So-ViT that matter to sharding: a stem with a norm, an encoder, and the second-order head."""

    def __init__(self):
        torch.manual_seed(0)
        super().__init__()
        # A bias before a norm has gradient zero, and Adam divides its rounding by its rounding.
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.encoder = nn.Sequential(Block(), Block())
        self.head = SecondOrderHead(8, 5, reduce_to=4)
        self.double()

    def forward(self, images):
        return self.head(self.encoder(self.stem(images).flatten(2).mT))


def optimiser(model, kind):
    """Two groups, the second with a learning rate of its own that is a tensor."""
    parameters = list(model.parameters())
    groups = [{"params": parameters[:-2]}, {"params": parameters[-2:], "lr": torch.tensor(0.01)}]
    if kind == "adamw":
        return torch.optim.AdamW(groups, lr=0.001, weight_decay=0.05)
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9 if kind == "sgd" else 0.0)


def train(model, optimizer, ranks, first=0, steps=STEPS):
    """Some steps on this process's part of every batch, clipped by the norm of the whole gradient."""
    model.train()
    for step in range(first, first + steps):
        torch.manual_seed(step)
        images, labels = torch.randn(BATCH, 3, 6, 6, dtype=torch.float64), torch.randint(5, (BATCH,))
        part = slice(ranks.rank * BATCH // ranks.world, (ranks.rank + 1) * BATCH // ranks.world)
        optimizer.zero_grad()
        cross_entropy(model(images[part]), labels[part]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def assert_same_states(found, expected, tolerance=TOLERANCE):
    for (_, one), (_, other) in zip(leaves(found), leaves(expected), strict=True):
        if isinstance(one, torch.Tensor):
            assert one.device == CPU
            assert type(one) is torch.Tensor
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
        else:
            assert one == other


def leaves(tree):
    return sorted(torch.utils._pytree.tree_leaves_with_path(tree), key=lambda leaf: str(leaf[0]))


def _equals_a_single_process(ranks, network, kind, fsdp):
    """Train on, from the state of two processes, in one and in two: all give what one process gives."""
    alone = network()
    optimizer_alone = optimiser(alone, kind)
    train(alone, optimizer_alone, ALONE)

    torch.manual_seed(ranks.rank)  # the main process's weights count
    own = network()
    if ranks.rank == 1:
        for p in own.parameters():
            nn.init.normal_(p)
    model = parallel(synchronise(own, ranks), RECIPE, ranks, fsdp=fsdp)
    assert isinstance(model, DistributedDataParallel) != fsdp
    assert all(isinstance(p, DTensor) for p in model.parameters()) == fsdp
    optimizer = optimiser(model, kind)
    train(model, optimizer, ranks)
    state = whole_state(model, optimizer)
    # Every process takes part in taking the state of one that is alone, and only the main one has it.
    expected = whole_state(alone, optimizer_alone)
    if not ranks.is_main:
        assert state == expected == ({}, {})
    assert_same_states(state, expected)

    state = from_main(state, ranks)
    resumed_alone = network()
    optimizer_resumed = optimiser(resumed_alone, kind)
    load_whole_state(resumed_alone, optimizer_resumed, *state)
    train(resumed_alone, optimizer_resumed, ALONE, first=STEPS)

    again = parallel(synchronise(network(), ranks), RECIPE, ranks, fsdp=fsdp)
    optimizer_again = optimiser(again, kind)
    load_whole_state(again, optimizer_again, *state)
    train(again, optimizer_again, ranks, first=STEPS)
    train(model, optimizer, ranks, first=STEPS)
    train(alone, optimizer_alone, ALONE, first=STEPS)
    expected = whole_state(alone, optimizer_alone)
    uninterrupted = whole_state(model, optimizer)
    assert_same_states(whole_state(resumed_alone, optimizer_resumed), expected)
    assert_same_states(uninterrupted, expected)
    # The same processes compute the same: not even rounding differs after a resume.
    assert_same_states(whole_state(again, optimizer_again), uninterrupted, tolerance=0)


def _exchanges(ranks):
    own = torch.tensor([1.0, ranks.rank])
    assert sum_over_ranks(own, ranks).tolist() == [2, 1]
    assert own.tolist() == [1, ranks.rank]
    assert from_main({"epoch": 3 + ranks.rank}, ranks) == {"epoch": 3}
    barrier(ranks)
    assert ranks == Ranks(dist.get_rank(), 2, dist.get_rank(), CPU)
    with pytest.raises(CommandError, match="tiny has none"):
        parallel(convolutional(), RECIPE, ranks, fsdp=True)


def _every_property(ranks):
    _exchanges(ranks)
    _equals_a_single_process(ranks, convolutional, "sgd", fsdp=False)
    _equals_a_single_process(ranks, convolutional, "plain", fsdp=False)
    _equals_a_single_process(ranks, Transformer, "adamw", fsdp=False)
    _equals_a_single_process(ranks, Transformer, "adamw", fsdp=True)
    _equals_a_single_process(ranks, Transformer, "sgd", fsdp=True)


def test_processes_together_are_one():
    on_ranks(_every_property, 2)


def test_a_single_process_shards_nothing():
    with pytest.raises(CommandError, match="--fsdp shards the encoder of the So-ViT networks; tiny has none"):
        parallel(convolutional(), RECIPE, ALONE, fsdp=True)
    with pytest.raises(CommandError, match="--fsdp shards over the processes of torchrun"):
        parallel(Transformer(), RECIPE, ALONE, fsdp=True)


def _fail_on_one(ranks, noticed):
    if ranks.is_main:
        with pytest.raises(RuntimeError, match=r"closed|reset"):
            sum_over_ranks(torch.ones(1), ranks)
        noticed.touch()
        time.sleep(PATIENCE.total_seconds())
    try:
        raise ArithmeticError("a step that fails")
    finally:
        stop(ranks)
        while not noticed.exists():
            time.sleep(0.01)


def test_a_process_that_fails_ends_the_others(tmp_path):
    """A process that waits for a failed one sees it leave, without a timeout; one that does not wait is ended."""
    began = time.monotonic()
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="a step that fails"):
        on_ranks(_fail_on_one, 2, tmp_path / "noticed")
    assert time.monotonic() - began < PATIENCE.total_seconds() / 2


@pytest.mark.parametrize("kind", ["sgd", "plain", "adamw"])
def test_a_single_process_resumes_bitwise(kind):
    model = convolutional()
    optimizer = optimiser(model, kind)
    train(model, optimizer, ALONE)
    states = whole_state(model, optimizer)
    saved = copy.deepcopy(states)
    train(model, optimizer, ALONE, first=STEPS)
    assert_same_states(states, saved, tolerance=0)  # copies, not the network's own tensors

    other = convolutional()
    new = optimiser(other, kind)
    lr = new.param_groups[1]["lr"]
    load_whole_state(other, new, *states)
    assert_same_states(states, saved, tolerance=0)
    assert new.param_groups[1]["lr"] is lr
    train(other, new, ALONE, first=STEPS)
    assert_same_states(whole_state(other, new), whole_state(model, optimizer), tolerance=0)
    assert whole_state(model)[1] == {}


def test_the_names_are_those_of_the_network():
    model = convolutional()
    compiled = torch.compile(model, backend="eager")
    assert whole_state(compiled)[0].keys() == model.state_dict().keys()
    other = convolutional()
    nn.init.zeros_(other[0].weight)
    load_whole_state(torch.compile(other, backend="eager"), None, *whole_state(compiled))
    assert torch.equal(other[0].weight, model[0].weight)


def test_states_of_other_networks_are_explained():
    model = convolutional()
    before = copy.deepcopy(model.state_dict())
    state = whole_state(model)[0]
    state["8.weight"] = state.pop("7.weight")
    with pytest.raises(RuntimeError, match=r"only one has: 7\.weight, 8\.weight"):
        load_whole_state(model, None, state)
    state["7.weight"] = state.pop("8.weight")[:, :3]
    with pytest.raises(RuntimeError, match=r"7\.weight"):
        load_whole_state(model, None, state)
    assert_same_states(model.state_dict(), before, tolerance=0)


def test_a_single_process_needs_no_group(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_ADDR", "left-over")
    ranks = start("cpu")
    assert ranks == ALONE
    assert ranks.is_main
    assert not dist.is_initialized()
    model = convolutional()
    assert parallel(synchronise(model, ranks), RECIPE, ranks) is model
    assert type(model[4]) is nn.BatchNorm2d
    assert model[1].process_group is None
    own = torch.ones(2)
    assert sum_over_ranks(own, ranks) is not own
    assert from_main(own, ranks) is own
    barrier(ranks)
    stop(ranks)
    for name, value in zip(VARIABLES, ("0", "1", "0", "localhost", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert start("cpu") == ALONE


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "0"}, "RANK set, but not WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT: start several"),
        ({"WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "but not RANK, LOCAL_RANK"),
        (dict(zip(VARIABLES, ("2", "2", "0", "a", "1"), strict=True)), "not torchrun's: RANK=2, WORLD_SIZE=2"),
        (dict(zip(VARIABLES, ("one", "2", "0", "a", "1"), strict=True)), "not torchrun's: RANK=one"),
        (dict(zip(VARIABLES, ("1", "2", "-1", "a", "1"), strict=True)), "LOCAL_RANK=-1"),
    ],
)
def test_other_environments_are_explained(variables, message, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CommandError, match=message):
        start("cpu")


@pytest.mark.parametrize(
    ("device", "world", "count", "message"),
    [
        ("gpu", 1, 1, "unknown device 'gpu'; cuda or cpu was expected"),
        ("mps", 1, 1, "training runs on cuda or cpu, not on mps"),
        ("cuda", 1, 0, "there is no CUDA device here"),
        ("cuda:2", 1, 2, "GPU 2 was asked for, but this machine has 2"),
        ("cuda", 4, 2, "GPU 3 was asked for, but this machine has 2"),
        ("cuda:1", 4, 2, "write cuda, each takes a GPU of its own"),
    ],
)
def test_other_devices_are_explained(device, world, count, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    for name, value in zip(VARIABLES, (str(world - 1), str(world), str(world - 1), "a", "1"), strict=True):
        monkeypatch.setenv(name, value)
    with pytest.raises(CommandError, match=message):
        start(device)
