"""Style exchange in training: two domains of pictures that are not paired, two generators, two discriminators."""
