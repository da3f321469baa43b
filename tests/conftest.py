"""Settings of every test."""

import signal

from hypothesis import settings

# Machines may be busy: no example fails for being slow. Nothing is written into the checkout.
settings.register_profile("scrimp", deadline=None, database=None)
settings.load_profile("scrimp")

# A shell that starts the tests in the background has SIGINT ignored, and every process they start
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
