"""A clock that tests can set: a preloaded library that shifts the wall clock of the processes under
test.

``environment(folder)`` compiles it where there is a compiler and returns the variables to start
processes with; ``set_clock`` moves the clocks of all of these, and of no other process. Monotonic
clocks are not changed.
"""

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *shift;
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SCRIMP_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift = page;
    close(file);
}
int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, which, now);
    if (!failed && shift && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += (long)*shift;
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) { now->tv_sec = exact.tv_sec; now->tv_usec = exact.tv_nsec / 1000; }
    return 0;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


def environment(folder: Path) -> dict[str, str]:
    """Return variables for processes whose clock `set_clock` moves; none where the library cannot
    be compiled."""
    compiler, library = shutil.which("cc"), folder / "clock.so"
    if compiler is None:
        return {}
    (folder / "clock.c").write_text(SOURCE)
    words = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "clock.c")]
    if subprocess.run(words, capture_output=True).returncode != 0:
        return {}
    set_clock(folder, 0.0)
    return {"LD_PRELOAD": str(library), "SCRIMP_TEST_CLOCK": str(folder / "clock")}


def set_clock(folder: Path, seconds: float) -> None:
    """Shift the clocks by ``seconds`` against the true time."""
    path = folder / "clock"
    # In place, since the processes have it mapped.
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("d", seconds))
