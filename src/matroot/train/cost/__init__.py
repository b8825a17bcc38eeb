"""What the large recipes cost on a cluster, by steps that are measured on one of its GPUs."""
