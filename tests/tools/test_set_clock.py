"""The clock of a process under test moves, and no other one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tools.set_clock import environment, set_clock


def test_a_clock_can_be_set_under_a_process(tmp_path: Path) -> None:
    variables = environment(tmp_path)
    if not variables:
        pytest.skip("no compiler is installed here (cc)")
    set_clock(tmp_path, 7200.0)
    code = "import time; print(time.time())"
    words = [sys.executable, "-S", "-c", code]
    told = subprocess.run(
        words, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    ).stdout
    assert 7100 < float(told) - time.time() < 7300
