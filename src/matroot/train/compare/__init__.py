"""``matroot compare``: the runs of a recipe with several presets and seeds, side by side."""
