"""Catalogs of named components, their settings, and the plugins that register new names."""
