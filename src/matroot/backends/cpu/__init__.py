"""Compiled code and LAPACK."""
