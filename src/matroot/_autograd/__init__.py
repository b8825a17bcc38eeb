"""Derivatives: the rule, the Lyapunov equation, fused backends as Functions, custom operators."""
