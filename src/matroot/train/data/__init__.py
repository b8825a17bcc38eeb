"""Data sets, where they are looked for, and batches of them."""
