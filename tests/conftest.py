"""Settings of every test."""

from hypothesis import settings

# Machines may be busy: no example fails for being slow. Nothing is written into the checkout.
settings.register_profile("scrimp", deadline=None, database=None)
settings.load_profile("scrimp")
