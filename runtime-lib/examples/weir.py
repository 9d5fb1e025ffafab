#!/usr/bin/env python3
"""Weir's functions (weir/weir.h) for Python, without a module to install. They do nothing where there is no Weir.

    import torch, weir

    background = torch.cuda.Stream()
    weir.set_priority(background.cuda_stream, weir.LOW)
    ...
    stream = torch.cuda.current_stream()
    weir.expect(stream.cuda_stream, 250)    # a request has come; its first kernel follows there within 250 us
    batch = decode(request)
    model(batch)

Started as a program, it shows what they answer in a context of its own."""

import ctypes
import errno
import os

OWN, LOW, NORMAL, HIGH, CRITICAL = range(-1, 4)

_process = ctypes.CDLL(None)


def _call(name, *arguments):
    """0, or a negative errno."""
    function = getattr(_process, name, None)
    return function(*arguments) if function else -errno.ENOSYS


def available():
    return _call("weir_available") == 1


def expect(stream, within_us):
    """@stream: the CUstream as a number; 0: the legacy default stream."""
    return _call("weir_expect", ctypes.c_void_p(stream), ctypes.c_uint(within_us))


def set_priority(stream, level):
    """@stream: the CUstream as a number; 0: the legacy default stream."""
    return _call("weir_set_priority", ctypes.c_void_p(stream), ctypes.c_int(level))


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or cuda.cuCtxSetCurrent(context):
        raise SystemExit("no GPU")
    for what, answer in (("set_priority", set_priority(0, LOW)), ("expect", expect(0, 500))):
        print(f"{what}: {os.strerror(-answer) if answer else 'done'}")
    print(f"available: {available()}")


if __name__ == "__main__":
    main()
