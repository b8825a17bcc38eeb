"""One program per matrix, all of it on chip."""
