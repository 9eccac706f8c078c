"""Measures a piece of code: wall and CPU seconds, peak resident memory."""

import gc
import resource
import time


def status(field):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


class Stage:
    """After `with Stage() as s: …`, s.took is a dict of seconds and MiB.

    base is the resident memory before the stage, peak the maximum during it.
    """

    def __enter__(self):
        gc.collect()
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # resets the kernel's peak (Documentation/filesystems/proc.rst)
        self.base, self.cpu, self.wall = status("VmRSS"), cpu(), time.perf_counter()
        return self

    def __exit__(self, *_):
        wall, used = time.perf_counter() - self.wall, cpu() - self.cpu
        self.took = {"wall": wall, "cpu": used, "base": self.base, "peak": status("VmHWM")}
