# A CUDA client that dies in a long kernel: dying.py kill|fault|assert
# All threads but a warp count up one word with compare-and-swap, which takes minutes. `kill`: until somebody kills the
# process. `fault`, `assert`: the first thread of that warp waits for 0.3 s, then it writes to a bad address, or an
# assertion fails. It does not count, because among so many threads its first swap may take minutes. Prints `up` before
# the launch, and its last error. Exit 75: the MPS server takes no clients now; 3: the error that it wanted; 1: another.
import ctypes
import os
import sys
import time

kind = sys.argv[1]
BLOCKS, THREADS, AFTER_NS = int(os.environ.get("GRID", "1024")), 256, 300_000_000
NOT_READY = (700, 710, 719, *range(805, 809))  # before its own kernel: the server has not got over another's
DEATH = {
    "kill": "",
    "fault": "mov.u64 %rd4, 16; st.global.u32 [%rd4], %r1;",
    "trap": "trap;",
    "assert": """
 mov.u64 %rd4, text; cvta.global.u64 %rd4, %rd4; mov.u64 %rd5, 1; mov.u32 %r1, 7;
 {
 .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
 st.param.b64 [a], %rd4; st.param.b64 [b], %rd4; st.param.b32 [c], %r1; st.param.b64 [d], %rd4; st.param.b64 [e], %rd5;
 call.uni __assertfail, (a, b, c, d, e);
 }""",
}
ASSERT = """
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[5] = {100, 121, 105, 110, 0};
"""
PTX = """
.version 7.0
.target sm_70
.address_size 64
%s
.visible .entry die(.param .u64 word, .param .u64 ns)
{
 .reg .u64 %%rd<8>; .reg .u32 %%r<8>; .reg .pred %%p<4>;
 ld.param.u64 %%rd1, [word];
 ld.param.u64 %%rd2, [ns];
 mov.u32 %%r5, %%ctaid.x;
 mov.u32 %%r6, %%tid.x;
 mov.u32 %%r7, 100000;
 setp.ne.u32 %%p1, %%r5, 0;
 @%%p1 bra AGAIN;
 setp.gt.u32 %%p1, %%r6, 31;
 @%%p1 bra AGAIN;
 mov.u64 %%rd3, %%globaltimer;
 add.u64 %%rd2, %%rd2, %%rd3;
WATCH:
 mov.u64 %%rd3, %%globaltimer;
 setp.lt.u64 %%p3, %%rd3, %%rd2;
 @%%p3 bra WATCH;
 setp.ne.u32 %%p1, %%r6, 0;
 @%%p1 bra OUT;
 mov.u32 %%r1, 1;
 %s
 bra OUT;
AGAIN:
 ld.volatile.global.u32 %%r1, [%%rd1];
SWAP:
 add.u32 %%r2, %%r1, 1;
 atom.global.cas.b32 %%r3, [%%rd1], %%r1, %%r2;
 setp.ne.u32 %%p1, %%r3, %%r1;
 mov.u32 %%r1, %%r3;
 @%%p1 bra SWAP;
 sub.u32 %%r7, %%r7, 1;
 setp.ne.u32 %%p2, %%r7, 0;
 @%%p2 bra AGAIN;
OUT:
 ret;
}
"""

cu = ctypes.CDLL("libcuda.so.1")


def name_of(code):
    name = ctypes.c_char_p()
    cu.cuGetErrorName(code, ctypes.byref(name))
    return (name.value or b"?").decode()


def check(what, code):
    if code:
        print(f"{what}: {code} {name_of(code)}", flush=True)
        os._exit(75 if code in NOT_READY else 1)


def load(module, kind):
    text = PTX % (ASSERT if kind == "assert" else "", DEATH[kind])
    return cu.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\0")


device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
word = ctypes.c_uint64()
check("cuInit", cu.cuInit(0))
check("cuDeviceGet", cu.cuDeviceGet(ctypes.byref(device), 0))
check("cuDevicePrimaryCtxRetain", cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check("cuCtxSetCurrent", cu.cuCtxSetCurrent(context))
if load(module, kind):
    print("no assertions here: trap", flush=True)
    check("cuModuleLoadData", load(module, "trap"))
check("cuModuleGetFunction", cu.cuModuleGetFunction(ctypes.byref(function), module, b"die"))
check("cuMemAlloc", cu.cuMemAlloc_v2(ctypes.byref(word), 4096))
check("cuMemsetD32", cu.cuMemsetD32_v2(word, 0, 1024))
after = ctypes.c_uint64(AFTER_NS)
arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in (word, after)))
check("cuCtxSynchronize", cu.cuCtxSynchronize())
print("up", flush=True)
check("cuLaunchKernel", cu.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, arguments, None))
began = time.monotonic()
code = cu.cuCtxSynchronize()
print(f"after {time.monotonic() - began:.2f} s: {code} {name_of(code)}", flush=True)
os._exit(3 if code else 1)
