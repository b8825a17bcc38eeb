"""Times and errors on a GPU, forward and backward pass of the root: ``python -m matroot.bench.gpu``.

matroot and its baselines take turns in one run. The suite ``shapes`` ends within its time budget: what matters most
comes first, and what no time is left for has a note. Results of every suite are saved as they come, in a file each.
"""
