"""What a piece of code takes: wall and CPU seconds, peak resident memory."""

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
    """with Stage() as s: …; then s.took is a dict of seconds and MiB.

    base is what was resident before, peak the most during the stage.
    """

    def __enter__(self):
        gc.collect()
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # peak starts again (Documentation/filesystems/proc.rst)
        self.base, self.cpu, self.wall = status("VmRSS"), cpu(), time.perf_counter()
        return self

    def __exit__(self, *_):
        wall, used = time.perf_counter() - self.wall, cpu() - self.cpu
        self.took = {"wall": wall, "cpu": used, "base": self.base, "peak": status("VmHWM")}
