# A small CUDA client by ctypes: client.py NAME SECONDS KERNEL_MS [fault]; $GRID blocks of $THREADS, $GAP s apart
# Launches spinning kernels one after the other until SECONDS are over; prints how many, and the first error.
import ctypes, os, sys, time
name, seconds, ms = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
fault = len(sys.argv) > 4
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 ns, .param .u64 p)
{
 .reg .u64 %rd<6>; .reg .pred %p<3>;
 ld.param.u64 %rd1, [ns];
 ld.param.u64 %rd4, [p];
 mov.u64 %rd2, %globaltimer;
L:
 mov.u64 %rd3, %globaltimer;
 sub.u64 %rd3, %rd3, %rd2;
 setp.lt.u64 %p1, %rd3, %rd1;
 @%p1 bra L;
 setp.eq.u64 %p2, %rd4, 0;
 @%p2 bra D;
 st.global.u64 [%rd4], %rd3;
D:
 ret;
}
"""
cu = ctypes.CDLL("libcuda.so.1")
t0 = time.time()
def ck(what, r):
    if r:
        s = ctypes.c_char_p()
        cu.cuGetErrorName(r, ctypes.byref(s))
        print("%s: %s -> %d %s after %.2f s" % (name, what, r, s.value, time.time() - t0), flush=True)
        time.sleep(float(os.environ.get("LINGER", "0")))
        os._exit(3)
ck("cuInit", cu.cuInit(0))
dev, ctx, mod, fn, n = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
cu.cuDeviceGetCount(ctypes.byref(n))
ck("cuDeviceGet", cu.cuDeviceGet(ctypes.byref(dev), 0))
ck("cuDevicePrimaryCtxRetain", cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev))
ck("cuCtxSetCurrent", cu.cuCtxSetCurrent(ctx))
ck("cuModuleLoadData", cu.cuModuleLoadData(ctypes.byref(mod), PTX + b"\0"))
ck("cuModuleGetFunction", cu.cuModuleGetFunction(ctypes.byref(fn), mod, b"spin"))
a, p = ctypes.c_uint64(int(ms * 1e6)), ctypes.c_uint64(16 if fault else 0)
args = (ctypes.c_void_p * 2)(ctypes.cast(ctypes.byref(a), ctypes.c_void_p), ctypes.cast(ctypes.byref(p), ctypes.c_void_p))
print("%s: up, %d GPU, after %.2f s" % (name, n.value, time.time() - t0), flush=True)
grid, threads, gap = int(os.environ.get("GRID", "1")), int(os.environ.get("THREADS", "32")), float(os.environ.get("GAP", "0"))
count, times, end = 0, [], time.time() + seconds
while time.time() < end:
    t = time.time()
    ck("launch %d" % count, cu.cuLaunchKernel(fn, grid, 1, 1, threads, 1, 1, 0, None, args, None))
    ck("sync %d" % count, cu.cuCtxSynchronize())
    times.append((time.time() - t) * 1e3)
    if gap: time.sleep(gap)
    count += 1
times.sort()
print("%s: %d kernels, p50 %.2f ms, p99 %.2f, worst %.2f" % (name, count, times[count // 2], times[count * 99 // 100], times[-1]), flush=True)
