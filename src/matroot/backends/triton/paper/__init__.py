"""The paper's methods and its gradient, fused."""
