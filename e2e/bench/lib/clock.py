"""The GPU's SM clock while an experiment runs. A client that keeps the GPU full may reach the board's power limit, which
lowers the clock for all clients."""

import ctypes
import glob
import statistics
import threading
import time

SM = 1  # NVML_CLOCK_SM
EVERY = 0.02  # seconds
NEAR = 1.02  # times: how far samples are from the clock's mean
LIBRARIES = ("libnvidia-ml.so.1", *sorted(glob.glob("/usr/local/nvidia/lib*/libnvidia-ml.so.1")))


def open_nvml():
    """NVML and its devices; no devices if there is no NVML."""
    for name in LIBRARIES:
        try:
            nvml = ctypes.CDLL(name)
        except OSError:
            continue
        count, devices = ctypes.c_uint(), []
        if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            continue
        for i in range(count.value):
            device = ctypes.c_void_p()
            if nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0:
                devices.append(device)
        return nvml, devices
    return None, []


class Clock:
    """Samples the clock from `with` to its end: of several GPUs the fastest's, as the others are idle. On the simulated GPU
    and without NVML it knows nothing."""

    def __init__(self, simulated=False):
        self.samples, self.ends = [], threading.Event()  # samples: (CLOCK_MONOTONIC, MHz)
        self.nvml, self.devices = (None, []) if simulated else open_nvml()
        self.sampler = threading.Thread(target=self.sample, daemon=True)

    def __enter__(self):
        if self.devices:
            self.sampler.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        if self.devices:
            self.sampler.join()

    def sample(self):
        mhz = ctypes.c_uint()
        while not self.ends.wait(EVERY):
            found = [mhz.value for device in self.devices if self.nvml.nvmlDeviceGetClockInfo(device, SM, ctypes.byref(mhz)) == 0]
            if found:
                self.samples.append((time.monotonic(), max(found)))

    def mean(self, begin, end):
        """MHz between two times; 0: not known."""
        within = [mhz for at, mhz in self.samples if begin <= at <= end]
        return sum(within) / len(within) if within else 0

    @property
    def median(self):
        """MHz; 0: not known."""
        return statistics.median(mhz for _, mhz in self.samples) if self.samples else 0

    def windows(self, begin, n, seconds=1.0):
        return [self.mean(begin + i * seconds, begin + (i + 1) * seconds) for i in range(n)]

    def slower(self, begin, n):
        """How many times as long as at the highest clock anything takes at most in each second; 0: not known."""
        highest = max((mhz for _, mhz in self.samples), default=0)
        return [NEAR * highest / mhz if mhz else 0 for mhz in self.windows(begin, n)]


def shown(clocks):
    return f"{' '.join(f'{mhz:.0f}' for mhz in clocks)} MHz" if all(clocks) else "clock not known"
