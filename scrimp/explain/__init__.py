"""Explanations of decisions, and replay of them from the log."""
