"""Conversion of configurations and trials into arrays for the models, and back."""
