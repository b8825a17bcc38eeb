"""Several processes that train one network: torchrun's environment, the process group, and what they share.

Every function also works for a single process, where it has nothing to do.
"""

import inspect
import itertools
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from .._terminal import CommandError
from .recipe import Recipe
from .sync_norm import synchronise_norms

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others before it fails."""
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets for every process that it starts."""


@dataclass(frozen=True)
class Ranks:
    """This process among all that train together."""

    rank: int
    """0 to world - 1."""
    world: int
    """Number of processes."""
    local_rank: int
    """Among the processes of this machine."""
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0


def start(device: str | None = None, timeout: timedelta = TIMEOUT) -> Ranks:
    """Join the other processes that torchrun started; without torchrun, this process alone.

    device: ``"cuda"``, ``"cpu"``, or None: CUDA where there is a GPU. Process k of a machine has its GPU k; nccl
        connects GPUs, gloo the processes of a CPU. A single process may name one: ``"cuda:1"``.
    timeout: of this and of every later exchange.

    CommandError for an environment that is not torchrun's, and for a device that is not there.
    """
    rank, world, local_rank = _torchrun()
    chosen = _device(device, local_rank, world)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if world > 1:
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        try:
            dist.init_process_group(backend, timeout=timeout, device_id=chosen if chosen.type == "cuda" else None)
        except (dist.DistError, ValueError) as error:
            address = ":".join(os.environ[name] for name in VARIABLES[-2:])
            raise CommandError(f"process {rank} of {world} cannot reach the others at {address}: {error}") from error
    return Ranks(rank, world, local_rank, chosen)


def stop(ranks: Ranks) -> None:
    """Leave the process group, in a ``finally`` clause; no error if there is none."""
    if ranks.world == 1 or not dist.is_initialized():
        return
    if sys.exception() is not None and ranks.device.type == "cuda" and dist.group.WORLD is not None:
        # The others will not answer what is under way, and leaving would wait for it.
        dist.group.WORLD.abort()
    dist.destroy_process_group()


def synchronise(model: nn.Module, ranks: Ranks) -> nn.Module:
    """Make batch normalisations, decorrelated ones too, use the statistics of all processes; see ``sync_norm``."""
    return model if ranks.world == 1 else synchronise_norms(model, ranks.device)


def parallel(model: nn.Module, recipe: Recipe, ranks: Ranks, fsdp: bool = False) -> nn.Module:
    """A network whose gradients are averaged over all processes, starting from the weights of the main one.

    model: on the device, with synchronised statistics: buffers are not exchanged.
    fsdp: shard parameters, gradients and the optimiser's state: every block of a transformer's encoder by itself, what
        is left together. Parameters are whole and in their own dtype wherever they are computed with, so the covariance
        root sees ordinary float32 tensors. CommandError for a network without ``encoder``, a Sequential of blocks, and
        for a single process.

    Make the optimiser of the parameters of what is returned.
    """
    blocks = getattr(model, "encoder", ())
    if fsdp and not isinstance(blocks, nn.Sequential):
        raise CommandError(f"--fsdp shards the encoder of the So-ViT networks; {recipe.model} has none")
    if ranks.world == 1:
        if fsdp:
            raise CommandError("--fsdp shards over the processes of torchrun; this one is alone")
        return model
    for tensor in itertools.chain(model.parameters(), model.buffers()):
        value = tensor.detach().contiguous()  # nccl takes no other layouts
        dist.broadcast(value, 0)
        tensor.detach().copy_(value)
    if fsdp:
        for parameter in model.parameters():
            parameter.data = parameter.data.contiguous()  # FSDP takes no other layouts; those of images are their own
        mesh = dist.init_device_mesh(ranks.device.type, (ranks.world,))
        # The whole network too: after an evaluation it would keep copies of weights that may change before the next.
        for module in (*blocks, model):
            fully_shard(module, mesh=mesh, reshard_after_forward=True)
        return model
    # Only for 1 x 1 convolutions, where it means nothing: a dimension of size 1 may have any stride.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    devices = [ranks.device] if ranks.device.type == "cuda" else None
    options: dict[str, Any] = {_EXCHANGE_BUFFERS: False, "gradient_as_bucket_view": True}
    return DistributedDataParallel(model, devices, **options)


# The name since torch 2.13, and the one before.
_EXCHANGE_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel).parameters
)


def sum_over_ranks(tensor: Tensor, ranks: Ranks) -> Tensor:
    """The sum of the ``tensor`` of every process, a new tensor on the device."""
    total = tensor.detach().to(ranks.device, copy=True)
    if ranks.world > 1:
        dist.all_reduce(total)
    return total


_T = TypeVar("_T")


def from_main(value: _T, ranks: Ranks) -> _T:
    """What the main process passes, on every process: only that one needs to see the run's files."""
    values = [value]
    if ranks.world > 1:
        dist.broadcast_object_list(values, 0)
    return values[0]


def barrier(ranks: Ranks) -> None:
    """Wait until every process is here."""
    if ranks.world > 1:
        dist.barrier()


def whole_state(model: nn.Module, optimizer: Optimizer | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Copies of the states of network and optimiser, unsharded and on the CPU, of use for any number of processes.

    Both name parameters as the network alone does, without DDP or ``torch.compile``. Every process must call this;
    those that are not the main one get empty dictionaries.
    """
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    of_model = get_model_state_dict(model, options=options)
    of_optimizer = {} if optimizer is None else get_optimizer_state_dict(model, optimizer, options=options)
    return tree_map_only(Tensor, torch.clone, (of_model, of_optimizer))


def load_whole_state(
    model: nn.Module,
    optimizer: Optimizer | None,
    model_state: Mapping[str, Any],
    optimizer_state: Mapping[str, Any] | None = None,
) -> None:
    """Put states of :func:`whole_state` back; every process passes the same ones, see :func:`from_main`.

    The number of processes, and whether they shard, may be another than when the states were taken. Learning rates that
    are tensors keep their place in memory. RuntimeError for states of another network, naming what differs.
    """
    # torch leaves what is missing as it is, strict or not.
    if differing := get_model_state_dict(model).keys() ^ model_state.keys():
        raise RuntimeError(f"the state is not of this network; names that only one has: {', '.join(sorted(differing))}")
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(model, dict(model_state), options=options)
    if optimizer is None or not optimizer_state or not optimizer_state["state"]:
        return
    own = [group["lr"] for group in optimizer.param_groups]
    # Loading renames parameter groups in place.
    state = tree_map_only(Tensor, torch.clone, {name: optimizer_state[name] for name in ("state", "param_groups")})
    set_optimizer_state_dict(model, optimizer, state, options=options)
    for group, lr in zip(optimizer.param_groups, own, strict=True):
        if isinstance(lr, Tensor):
            group["lr"] = lr.copy_(group["lr"])


def _torchrun() -> tuple[int, int, int]:
    """Rank, world and local rank; 0, 1, 0 without torchrun."""
    found = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    # An address alone may be a leftover of the shell.
    if not found.keys() & set(VARIABLES[:3]):
        return 0, 1, 0
    if missing := [name for name in VARIABLES if name not in found]:
        raise CommandError(
            f"{', '.join(found)} set, but not {', '.join(missing)}: start several processes by "
            "torchrun, and a single one without these variables"
        )
    try:
        rank, world, local_rank = (int(found[name]) for name in VARIABLES[:3])
    except ValueError:
        rank = world = local_rank = -1
    if not 0 <= local_rank <= rank < world:
        values = ", ".join(f"{name}={found[name]}" for name in VARIABLES[:3])
        raise CommandError(f"the environment of this process is not torchrun's: {values}")
    return rank, world, local_rank


def _device(name: str | None, local_rank: int, world: int) -> torch.device:
    """The device of this process; CommandError if there is none."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise CommandError(f"unknown device {name!r}; cuda or cpu was expected") from error
    if device.type not in ("cuda", "cpu"):
        raise CommandError(f"training runs on cuda or cpu, not on {device.type}")
    if device.type == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if count == 0:
        raise CommandError(f"--device {name}: there is no CUDA device here, or torch was built without CUDA")
    if world > 1:
        if device.index is not None:
            raise CommandError(f"--device {name} with {world} processes: write cuda, each takes a GPU of its own")
        device = torch.device("cuda", local_rank)
    index = device.index or 0
    if index >= count:
        raise CommandError(f"GPU {index} was asked for, but this machine has {count}, numbered from 0")
    return torch.device("cuda", index)
