"""Programs that show and measure the library; they need ``pip install "matroot[experiments]"``."""
