"""Running a function in several processes, as torchrun starts them."""

import multiprocessing
import os
import socket
from datetime import timedelta

import torch
import torch.multiprocessing

from matroot.train.distributed import start, stop

from ..nn.ranks import IMPORTED_ONCE

PATIENCE = timedelta(seconds=60)
"""Far more than any test takes: a process that waits for another in vain fails, and does not hang."""


def as_torchrun(function, world, *arguments):
    """Call ``function(*arguments)`` in ``world`` processes with torchrun's environment.

    An exception in any process is raised here. Processes are forked from a server that has imported the library once,
    and has no threads.
    """
    multiprocessing.set_forkserver_preload(IMPORTED_ONCE)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    everything = (function, world, port, arguments)
    torch.multiprocessing.start_processes(_process, everything, nprocs=world, start_method="forkserver")


def on_ranks(function, world, *arguments):
    """Call ``function(ranks, *arguments)`` in ``world`` processes that have joined, on the CPU."""
    as_torchrun(_join, world, function, *arguments)


def _process(rank, function, world, port, arguments):
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    function(*arguments)


def _join(function, *arguments):
    ranks = start("cpu", timeout=PATIENCE)
    try:
        function(ranks, *arguments)
    finally:
        stop(ranks)
