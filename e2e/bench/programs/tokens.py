#!/usr/bin/env python3
"""Text to a PyTorch tensor by an event loop on the GPU: the loop reads documents from a file, numbers their words and
writes their rows of an embedding table into memory that belongs to PyTorch. PyTorch does the same by itself, and compares.

    tokens.py libloop-tokens.so [--documents N]

Prints a line of JSON; exits with 1 if a number or a row differs."""

import argparse
import ctypes
import json
import random
import sys
import tempfile

import torch

import token_pipeline
from token_pipeline import MASK, PAD, ROW

WORDS, DIMENSION = 20000, 128


def on_gpu(numbers):
    """64-bit numbers."""
    return torch.frombuffer(bytearray(numbers.tobytes()), dtype=torch.int64).cuda()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--documents", type=int, default=4000)
    options = parser.parse_args()

    random.seed(1)
    words = token_pipeline.words_of(WORDS)
    texts = token_pipeline.documents_of(words, options.documents)
    offsets, vocabulary = on_gpu(token_pipeline.offsets_of(texts)), on_gpu(token_pipeline.vocabulary_of(words))
    table = torch.randn(len(words) + 2, DIMENSION, device="cuda")
    numbers = torch.empty(len(texts), ROW, dtype=torch.int32, device="cuda")
    tensor = torch.empty(len(texts), ROW, DIMENSION, device="cuda")
    torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(texts))
        file.flush()
        pipeline = token_pipeline.Pipeline(
            file.name.encode(), len(texts), DIMENSION, MASK, offsets.data_ptr(), vocabulary.data_ptr(), table.data_ptr(),
            numbers.data_ptr(), tensor.data_ptr(), 0,
        )  # fmt: skip
        seconds = token_pipeline.load(options.library)(ctypes.byref(pipeline), 1)
    wanted = torch.tensor(token_pipeline.numbers_of(texts, words), dtype=torch.int32).cuda()
    right = torch.equal(numbers, wanted) and torch.equal(tensor, torch.nn.functional.embedding(wanted.long(), table))
    print(json.dumps({"documents": len(texts), "tokens": int((wanted > PAD).sum()), "seconds": seconds, "right": right}))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
