#!/usr/bin/env python3
"""Applications of a GPU, one function each, with fixed seeds. Prints the SHA-256 of every output, so that two runs can
be compared bit by bit.

    apps.py [--rounds N] NAME...          prints one line of JSON: {"NAME/OUTPUT": "sha256"}

Everything that picks algorithms by timing is switched off: it could choose otherwise on a busy GPU,
with or without Weir.
"""

import argparse
import hashlib
import json
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def sha256(array):
    """SHA-256 of a numpy array's bytes."""
    return hashlib.sha256(array.tobytes()).hexdigest()


def torch_module():
    import torch

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.set_float32_matmul_precision("highest")
    return torch


def torch_hash(tensor):
    import torch

    return sha256(tensor.detach().contiguous().view(torch.uint8).cpu().numpy())


def normal(torch, *shape, dtype=None):
    """Random numbers made on the CPU: the same everywhere."""
    return torch.randn(*shape).to("cuda", dtype or torch.float32)


def torch_eager(rounds):
    torch = torch_module()
    a, b = normal(torch, 4096, 4096), normal(torch, 4096, 4096)
    half = a.to(torch.bfloat16)
    model = torch.nn.Sequential(
        torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True),
        torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True),
    ).cuda()
    batch = normal(torch, 8, 256, 512)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    c, d, losses = a, half, []
    for _ in range(rounds):
        c = torch.mm(c, b) * 1e-2
        d = torch.mm(d, half) * 1e-2
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {
        "matmul": torch_hash(c),
        "matmul-bf16": torch_hash(d),
        "softmax": torch_hash(torch.softmax(a, 1)),
        "layer-norm": torch_hash(torch.nn.functional.layer_norm(a, (4096,))),
        "sort": torch_hash(torch.sort(a, 1).values),
        "losses": torch_hash(torch.stack(losses)),
        "weights": torch_hash(torch.cat([p.flatten() for p in model.parameters()])),
    }


def torch_compile(rounds):
    torch = torch_module()
    import torch._inductor.config as inductor

    if hasattr(inductor, "deterministic"):
        inductor.deterministic = True

    @torch.compile
    def fused(x, y):
        z = torch.nn.functional.gelu(x * y + x.sin())
        return torch.softmax(z - z.mean(1, keepdim=True), 1)

    x, y = normal(torch, 2048, 4096), normal(torch, 2048, 4096)
    for _ in range(rounds):
        x = fused(x, y) + y
    return {"fused": torch_hash(x)}


def torch_graphs(rounds):
    torch = torch_module()
    a, state = normal(torch, 2048, 2048), normal(torch, 2048, 2048)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # warm up, as the documentation asks
        for _ in range(3):
            torch.tanh(torch.mm(state, a) * 1e-2)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(8):
            state.copy_(torch.tanh(torch.mm(state, a) * 1e-2 + a))
    for _ in range(4 * rounds):
        graph.replay()
    torch.cuda.synchronize()
    return {"state": torch_hash(state)}


def cudnn(rounds):
    torch = torch_module()
    layer = torch.nn.Conv2d(64, 128, 3, padding=1).cuda()
    images = normal(torch, 32, 64, 56, 56)
    output = None
    for _ in range(rounds):
        output = layer(images)
        layer.zero_grad()
        output.pow(2).mean().backward()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter -= 0.1 * parameter.grad
    return {"output": torch_hash(output), "weights": torch_hash(layer.weight)}


def cupy(rounds):
    import cupy as cp
    import numpy as np

    generator = np.random.default_rng(7)
    a = cp.asarray(generator.standard_normal((2048, 2048), dtype=np.float32))
    kernel = cp.RawKernel(
        r"""extern "C" __global__ void scale(float *x, float by, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] = x[i] * by + 1.0f;
        }""",
        "scale",
    )
    b = a.copy()
    for _ in range(20 * rounds):
        b = cp.tanh(b @ a * np.float32(1e-2))
        kernel((b.size // 256,), (256,), (b, np.float32(0.5), np.int32(b.size)))
    spectrum = cp.fft.rfft(b, axis=1)
    return {
        "product": sha256(cp.asnumpy(b)),
        "sort": sha256(cp.asnumpy(cp.sort(b.ravel()))),
        "cumsum": sha256(cp.asnumpy(cp.cumsum(cp.arange(1 << 20)))),
        "fft": sha256(cp.asnumpy(spectrum)),
    }


def jax(rounds):
    import jax as j
    import jax.numpy as jnp
    import numpy as np

    generator = np.random.default_rng(7)
    weights = jnp.asarray(generator.standard_normal((1024, 1024), dtype=np.float32) * 0.02)
    inputs = jnp.asarray(generator.standard_normal((512, 1024), dtype=np.float32))

    @j.jit
    def step(w):
        def loss(w):
            return jnp.mean((jnp.tanh(inputs @ w) @ w - inputs) ** 2)

        value, gradient = j.value_and_grad(loss)(w)
        return w - 0.01 * gradient, value

    value = None
    for _ in range(100 * rounds):  # a second or so
        weights, value = step(weights)
    return {"weights": sha256(np.asarray(weights)), "loss": sha256(np.asarray(value))}


APPS = {
    "torch-eager": torch_eager,
    "torch-compile": torch_compile,
    "torch-graphs": torch_graphs,
    "cudnn": cudnn,
    "cupy": cupy,
    "jax": jax,
}


def main():
    parser = argparse.ArgumentParser(description="GPU applications with hashed outputs")
    parser.add_argument("names", nargs="+", choices=APPS, metavar="NAME", help=", ".join(APPS))
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    outputs = {}
    for name in options.names:
        for output, digest in APPS[name](options.rounds).items():
            outputs[f"{name}/{output}"] = digest
    print(json.dumps(outputs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
