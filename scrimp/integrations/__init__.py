"""Scrimp inside other libraries, one module per library."""
