"""Kernels in which every product is three float16 ones, whatever the condition number."""
