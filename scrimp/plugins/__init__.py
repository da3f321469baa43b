"""Catalogs of named components, how their settings are declared, and the plugins that register new
names."""
