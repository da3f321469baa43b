import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
{setup}

def work():
    parts = [np.ones(40_000) for _ in range(6)]
    return sum(part[0] for part in parts)

for _ in range(50):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(200):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(setup):
    run = subprocess.run(
        [sys.executable, "-c", FAULTS.format(setup=setup)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the C library of Linux")
def test_freed_arrays_are_used_again():
    kept = page_faults("import scrimp.gp")
    # 200 rounds over 2 MB: about 100,000 pages fetched anew without the call, next to none with it
    assert kept < 2_000
