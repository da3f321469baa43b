"""Suggesters: which configuration to try next (random, Sobol, GP, TPE, evolutionary)."""
