"""The paper's numerical tests and those of the default solver, behind ``matroot bench``."""
