#!/usr/bin/env python3
"""libloop-tokens.so with memory of a Python program, as PyTorch would bring it, on the GPU that libcuda.so.1 shows:

    token-library.py libloop-tokens.so FOLDER"""

import array
import ctypes
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench/programs"))
import token_pipeline  # noqa: E402

DIMENSION = 4
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        sys.exit(f"{name}: {result}")


def device_memory(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address


def uploaded(values):
    data = values.tobytes()
    address = device_memory(len(data))
    call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
    return address.value


def downloaded(address, kind, count):
    values = array.array(kind, bytes(4 * count))
    call("cuMemcpyDtoH_v2", (ctypes.c_char * (4 * count)).from_buffer(values), ctypes.c_uint64(address), ctypes.c_size_t(4 * count))
    return values


def main():
    library, folder = sys.argv[1:]
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    random.seed(1)
    words = token_pipeline.words_of(300)
    texts = token_pipeline.documents_of(words, 30)
    table = array.array("f", [random.randint(-99, 99) for _ in range((len(words) + 2) * DIMENSION)])
    cells = len(texts) * token_pipeline.ROW
    numbers, tensor = device_memory(4 * cells).value, device_memory(4 * cells * DIMENSION).value
    path = pathlib.Path(folder) / "documents"
    path.write_text("".join(texts))
    pipeline = token_pipeline.Pipeline(
        str(path).encode(), len(texts), DIMENSION, token_pipeline.MASK, uploaded(token_pipeline.offsets_of(texts)),
        uploaded(token_pipeline.vocabulary_of(words)), uploaded(table), numbers, tensor, 0,
    )  # fmt: skip
    token_pipeline.load(library)(ctypes.byref(pipeline), 1)
    path.unlink()
    wanted = [number for row in token_pipeline.numbers_of(texts, words) for number in row]
    rows = [value for number in wanted for value in table[number * DIMENSION : (number + 1) * DIMENSION]]
    right = list(downloaded(numbers, "I", cells)) == wanted and list(downloaded(tensor, "f", cells * DIMENSION)) == rows
    print("right" if right else "wrong", len(texts))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
