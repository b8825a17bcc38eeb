"""Matrices in tiles, several programs per matrix."""
