"""Settings of every test."""

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Machines may be busy: no example fails for being slow. Nothing is written into the checkout.
settings.register_profile("scrimp", deadline=None, database=None)
settings.load_profile("scrimp")

# A shell that starts the tests in the background has SIGINT ignored, and every process they start
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def logger_as_it_was() -> Iterator[None]:
    """Examples and libraries under test quieten the logger `scrimp`, or disable all: no test hands
    that on."""
    logger = logging.getLogger("scrimp")
    level, disabled, propagate = logger.level, logger.disabled, logger.propagate
    yield
    logger.setLevel(level)
    logger.disabled, logger.propagate = disabled, propagate
