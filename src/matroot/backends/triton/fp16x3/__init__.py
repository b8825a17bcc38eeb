"""Roots and gradients in triples of float16 products at every condition number; chosen by name only."""
