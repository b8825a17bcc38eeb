"""Kernels of decorrelated batch normalisation."""
