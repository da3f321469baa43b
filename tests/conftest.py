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


MAX_TEST_SECONDS = 300
"""A test that hangs is named instead of ending the whole run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Limit the time of every test without a limit of its own."""
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(MAX_TEST_SECONDS))


@pytest.fixture(autouse=True)
def logger_as_it_was() -> Iterator[None]:
    """Restore the logger `scrimp`, which examples and libraries under test silence or disable."""
    logger = logging.getLogger("scrimp")
    level, disabled, propagate = logger.level, logger.disabled, logger.propagate
    yield
    logger.setLevel(level)
    logger.disabled, logger.propagate = disabled, propagate
