"""When work begins and ends on the GPU, by its own clock: a kernel of one thread before the work and one behind it. They
may be nodes of the same graph."""

import ctypes

PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 at)
{
    .reg .b64 %at, %now;
    ld.param.u64 %at, [at];
    mov.u64 %now, %globaltimer;
    st.volatile.u64 [%at], %now;
    ret;
}
"""
MAPPED = 2  # CU_MEMHOSTALLOC_DEVICEMAP


class Stamps:
    """In the current context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), self.module, b"stamp")
        memory, address = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(16), MAPPED)
        self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), memory, 0)
        self.times = (ctypes.c_uint64 * 2).from_address(memory.value)
        self.at = [ctypes.c_uint64(address.value + 8 * which) for which in range(2)]

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: CUDA error {result}")

    def mark(self, which, stream):
        """Notes the time when @stream, a handle, comes here: 0 before the work, 1 behind it."""
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(self.at[which]))
        self.call("cuLaunchKernel", self.kernel, 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), parameters, None)

    @property
    def ms(self):
        """Between the two, when both are over."""
        return (self.times[1] - self.times[0]) / 1e6
