"""One file for each form in which data is kept."""
