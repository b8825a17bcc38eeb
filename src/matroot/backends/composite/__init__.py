"""Backends that prepare matrices for other backends."""
