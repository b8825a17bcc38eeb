"""Running a function on several ranks of a process group."""

import multiprocessing

import torch
import torch.distributed as dist
import torch.multiprocessing

IMPORTED_ONCE = [
    "matroot.nn", "matroot.train.distributed", "torch.distributed.nn", "torch.distributed.tensor",
    "torch._dynamo", "functorch.compile",
]  # fmt: skip
"""By the server that ranks are forked from, of which a process has one: what any of its ranks needs."""


def on_ranks(function, world, folder):
    """Call ``function(rank, world)`` on every rank of a gloo group; an exception on any rank is raised here.

    Ranks are forked from a server that has imported the library once, and has no threads.
    """
    multiprocessing.set_forkserver_preload(IMPORTED_ONCE)
    arguments = (function, world, folder / "rendezvous")
    torch.multiprocessing.start_processes(_rank, arguments, nprocs=world, start_method="forkserver")


def _rank(rank, function, world, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    try:
        function(rank, world)
    finally:
        dist.destroy_process_group()
