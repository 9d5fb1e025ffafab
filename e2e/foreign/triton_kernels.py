"""Kernels in Triton, in several types and sizes. Nothing here runs: Triton's compiler makes PTX of them, without a GPU.

    triton_kernels.py FOLDER        writes FOLDER/NAME.ptx for each instance
"""

import itertools
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 90, 32)
PTX_VERSION = 90  # the pinned ptxas reads no newer one


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def gelu_dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    v = v * tl.sigmoid(1.702 * v)
    v = tl.where(tl.rand(seed, at) > p, v / (1 - p), 0.0)
    tl.store(out + at, v.to(out.dtype.element_ty), mask=at < n)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, (v / tl.sum(v, axis=0)).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def layer_norm(x, weight, bias, out, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        mean += v
        square += v * v
    m = tl.sum(mean, axis=0) / n
    scale = 1 / tl.sqrt(tl.sum(square, axis=0) / n - m * m + eps)
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=at < n).to(tl.float32)
        b = tl.load(bias + at, mask=at < n).to(tl.float32)
        tl.store(out + row * stride + at, ((v - m) * scale * w + b).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def cross_entropy(logits, labels, loss, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    high = -float("inf")
    total = 0.0
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(logits + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(high, tl.max(v, axis=0))
        total = total * tl.exp(high - new) + tl.sum(tl.exp(v - new), axis=0)
        high = new
    wanted = tl.load(logits + row * stride + tl.load(labels + row)).to(tl.float32)
    tl.store(loss + row, tl.log(total) + high - wanted)


@triton.jit
def rotate(x, cos, sin, out, stride, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    c = tl.load(cos + row * half + at, mask=at < half)
    s = tl.load(sin + row * half + at, mask=at < half)
    a = tl.load(x + row * stride + at, mask=at < half)
    b = tl.load(x + row * stride + half + at, mask=at < half)
    tl.store(out + row * stride + at, a * c - b * s, mask=at < half)
    tl.store(out + row * stride + half + at, b * c + a * s, mask=at < half)


@triton.jit
def scan(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + row * stride + at, tl.cumsum(v, axis=0).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def sort(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=float("inf"))
    tl.store(out + row * stride + at, tl.sort(v), mask=at < n)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0).to(tl.int32) & 127
    tl.atomic_add(out + tl.arange(0, 128), tl.histogram(v, 128))


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + r * columns + c, mask=(r < rows) & (c < columns))
    tl.store(out + c * rows + r, v, mask=(r < rows) & (c < columns))


@triton.jit
def spin_lock(x, lock, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.sum(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + v)
    tl.atomic_xchg(lock, 0)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(n, N)
    first = pid // (GROUP * columns) * GROUP
    size = min(tl.cdiv(m, M) - first, GROUP)
    row = first + pid % (GROUP * columns) % size
    column = pid % (GROUP * columns) // size
    r = (row * M + tl.arange(0, M)) % m
    s = (column * N + tl.arange(0, N)) % n
    t = tl.arange(0, K)
    total = tl.zeros([M, N], tl.float32)
    for begin in range(0, tl.cdiv(k, K)):
        left = k - begin * K
        x = tl.load(a + r[:, None] * k + begin * K + t[None, :], mask=t[None, :] < left, other=0.0)
        y = tl.load(b + (begin * K + t[:, None]) * n + s[None, :], mask=t[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
    r = row * M + tl.arange(0, M)
    s = column * N + tl.arange(0, N)
    inside = (r[:, None] < m) & (s[None, :] < n)
    tl.store(c + r[:, None] * n + s[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    base = tl.program_id(1) * n * D
    r = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    rows = tl.load(q + base + r[:, None] * D + d[None, :], mask=r[:, None] < n, other=0.0)
    high = tl.full([M], -float("inf"), tl.float32)
    sums = tl.zeros([M], tl.float32)
    total = tl.zeros([M, D], tl.float32)
    end = min(n, (tl.program_id(0) + 1) * M) if CAUSAL else n
    for begin in range(0, end, N):
        c = begin + tl.arange(0, N)
        keys = tl.load(k + base + c[None, :] * D + d[:, None], mask=c[None, :] < n, other=0.0)
        scores = tl.dot(rows, keys) * scale
        visible = (c[None, :] < n) & (r[:, None] >= c[None, :]) if CAUSAL else c[None, :] < n
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(high, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new[:, None])
        decay = tl.exp2(high - new)
        sums = sums * decay + tl.sum(weights, axis=1)
        values = tl.load(v + base + c[:, None] * D + d[None, :], mask=c[:, None] < n, other=0.0)
        total = tl.dot(weights.to(values.dtype), values, total * decay[:, None])
        high = new
    tl.store(out + base + r[:, None] * D + d[None, :], (total / sums[:, None]).to(out.dtype.element_ty), mask=r[:, None] < n)


FLOATS = ("fp16", "bf16", "fp32")
ROWS = {"BLOCK": (256, 1024, 4096)}
# Each kernel with the types of its pointers that vary (`*`), those of its other arguments, its sizes and its options.
INSTANCES = (
    (add, FLOATS + ("i32",), {"x": "*", "y": "*", "out": "*", "n": "i32"}, ROWS, {"num_warps": (4, 8)}),
    (gelu_dropout, FLOATS, {"x": "*", "out": "*", "n": "i32", "p": "fp32", "seed": "i32"}, ROWS, {"num_warps": (4, 8)}),
    (softmax, FLOATS, {"x": "*", "out": "*", "stride": "i32", "n": "i32"}, ROWS, {"num_warps": (4, 8)}),
    (layer_norm, FLOATS, {"x": "*", "weight": "*", "bias": "*", "out": "*", "stride": "i32", "n": "i32", "eps": "fp32"}, ROWS, {"num_warps": (4, 8)}),
    (cross_entropy, FLOATS, {"logits": "*", "labels": "*i64", "loss": "*fp32", "stride": "i32", "n": "i32"}, ROWS, {"num_warps": (4, 8)}),
    (rotate, FLOATS, {"x": "*", "cos": "*", "sin": "*", "out": "*", "stride": "i32", "half": "i32"}, {"BLOCK": (64, 128)}, {"num_warps": (1, 4)}),
    (scan, FLOATS, {"x": "*", "out": "*", "stride": "i32", "n": "i32"}, ROWS, {"num_warps": (4,)}),
    (sort, ("fp32", "fp16"), {"x": "*", "out": "*", "stride": "i32", "n": "i32"}, {"BLOCK": (128, 512)}, {"num_warps": (4,)}),
    (histogram, ("i32", "u8"), {"x": "*", "out": "*i32", "n": "i32"}, {"BLOCK": (1024, 4096)}, {"num_warps": (4, 8)}),
    (transpose, FLOATS, {"x": "*", "out": "*", "rows": "i32", "columns": "i32"}, {"BLOCK": (32, 64)}, {"num_warps": (4,)}),
    (spin_lock, FLOATS, {"x": "*", "lock": "*i32", "out": "*fp32", "n": "i32"}, {"BLOCK": (1024,)}, {"num_warps": (4,)}),
    (matmul, ("fp16", "bf16", "fp32"), {"a": "*", "b": "*", "c": "*", "m": "i32", "n": "i32", "k": "i32"},
     {"M": (64, 128), "N": (64, 128), "K": (32,), "GROUP": (8,)}, {"num_warps": (4, 8), "num_stages": (2, 4)}),
    (attention, ("fp16", "bf16"), {"q": "*", "k": "*", "v": "*", "out": "*", "n": "i32", "scale": "fp32"},
     {"M": (64, 128), "N": (64,), "D": (64, 128), "CAUSAL": (0, 1)}, {"num_warps": (4, 8), "num_stages": (2,)}),
)


def combinations(choices):
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values))


def instances():
    """(name, source, options) of each instance."""
    for kernel, types, arguments, sizes, options in INSTANCES:
        for kind, size, option in itertools.product(types, combinations(sizes), combinations(options)):
            signature = {name: f"*{kind}" if of == "*" else of for name, of in arguments.items()}
            signature |= {name: "constexpr" for name in size}
            words = [kernel.__name__, kind, *(str(value) for value in (*size.values(), *option.values()))]
            yield "_".join(words), ASTSource(fn=kernel, signature=signature, constexprs=size), option


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, source, option in instances():
        made = triton.compile(source, target=TARGET, options={"ptx_version": PTX_VERSION, **option})
        (folder / f"{name}.ptx").write_text(made.asm["ptx"])


if __name__ == "__main__":
    main()
