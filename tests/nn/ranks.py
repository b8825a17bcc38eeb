"""Running a function on several ranks of a process group."""

import multiprocessing

import torch
import torch.distributed as dist
import torch.multiprocessing


def on_ranks(function, world, folder):
    """Call ``function(rank, world)`` on every rank of a gloo group; an exception on any rank is raised here.

    Ranks are forked from a server that has imported the library once, and has no threads.
    """
    multiprocessing.set_forkserver_preload(["matroot.nn", "torch.distributed.nn"])
    arguments = (function, world, folder / "rendezvous")
    torch.multiprocessing.start_processes(_rank, arguments, nprocs=world, start_method="forkserver")


def _rank(rank, function, world, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    try:
        function(rank, world)
    finally:
        dist.destroy_process_group()
