"""Tuning methods by name: the Policy contract, the catalog and methods that decide jointly."""
