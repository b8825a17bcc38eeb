"""How the weights of the universal transfer are made: ``python -m matroot.style.distillation``."""
