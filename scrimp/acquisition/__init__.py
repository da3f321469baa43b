"""Acquisition functions, and the search for the point that maximizes one."""
