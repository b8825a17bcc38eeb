"""Where the arithmetic runs."""
