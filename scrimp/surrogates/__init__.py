"""Surrogate models: GPs, forests, kernel densities, models across budgets."""
