"""Roots and gradients of matrices of any condition number, in tiles; every product is three float16 ones."""
