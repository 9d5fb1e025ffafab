#!/usr/bin/env python3
"""Text to a PyTorch tensor by an event loop on the GPU: the loop reads documents from a file, numbers their words and
writes their rows of an embedding table into memory that belongs to PyTorch. PyTorch does the same by itself, and compares.

    tokens.py libloop-tokens.so [--documents N]

Prints a line of JSON; exits with 1 if a number or a row differs."""

import argparse
import ctypes
import json
import os
import random
import re
import string
import sys
import tempfile

import torch

ROW, PAD, UNKNOWN = 64, 0, 1  # as in e2e/workloads/loop/token-job.h
WORDS, DIMENSION = 20000, 128
MASK = 65536 - 1  # places of the vocabulary, less one


class Pipeline(ctypes.Structure):
    """struct pipeline of e2e/workloads/loop/pipeline.h."""

    _fields_ = [
        ("path", ctypes.c_char_p), ("documents", ctypes.c_uint32), ("dimension", ctypes.c_uint32), ("mask", ctypes.c_uint32),
        ("offsets", ctypes.c_uint64), ("vocabulary", ctypes.c_uint64), ("table", ctypes.c_uint64),
        ("numbers", ctypes.c_uint64), ("tensor", ctypes.c_uint64), ("blocks", ctypes.c_uint32), ("slots", ctypes.c_uint32),
    ]  # fmt: skip


def hash_of(word):
    value = 14695981039346656037
    for letter in word.encode():
        value = (value ^ letter) * 1099511628211 % 2**64
    return value


def vocabulary_of(words):
    """Places of (hash, number) as the loop reads them, each as two 64-bit words."""
    places = [(0, 0)] * (MASK + 1)
    for number, word in enumerate(words, UNKNOWN + 1):
        at = hash_of(word) & MASK
        while places[at][0]:
            at = (at + 1) & MASK
        places[at] = hash_of(word), number
    flat = [word - 2**64 if word >= 2**63 else word for place in places for word in place]
    return torch.tensor(flat, dtype=torch.int64, device="cuda")


def documents_of(words, count):
    strange = ["unheard", "of"]
    return [" ".join(random.choices(words + strange, k=random.randint(5, 2 * ROW))) + "\n" for _ in range(count)]


def numbers_of(texts, words):
    """What PyTorch's user would do: numbers by a dictionary."""
    known = {word: number for number, word in enumerate(words, UNKNOWN + 1)}
    rows = [[known.get(word, UNKNOWN) for word in re.findall("[a-z]+", text)][:ROW] for text in texts]
    return torch.tensor([row + [PAD] * (ROW - len(row)) for row in rows], dtype=torch.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--documents", type=int, default=4000)
    options = parser.parse_args()
    run = ctypes.CDLL(os.path.abspath(options.library)).pipeline_run
    run.restype, run.argtypes = ctypes.c_double, [ctypes.POINTER(Pipeline), ctypes.c_int]

    random.seed(1)
    words = sorted({"".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))) for _ in range(WORDS)})
    texts = documents_of(words, options.documents)
    ends = torch.tensor([0, *(len(text) for text in texts)]).cumsum(0)
    offsets, vocabulary = ends.cuda(), vocabulary_of(words)
    table = torch.randn(len(words) + 2, DIMENSION, device="cuda")
    numbers = torch.empty(len(texts), ROW, dtype=torch.int32, device="cuda")
    tensor = torch.empty(len(texts), ROW, DIMENSION, device="cuda")
    torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(texts))
        file.flush()
        pipeline = Pipeline(file.name.encode(), len(texts), DIMENSION, MASK, offsets.data_ptr(), vocabulary.data_ptr(),
                            table.data_ptr(), numbers.data_ptr(), tensor.data_ptr(), 0, 0)  # fmt: skip
        seconds = run(ctypes.byref(pipeline), 1)
    wanted = numbers_of(texts, words).cuda()
    right = torch.equal(numbers, wanted) and torch.equal(tensor, torch.nn.functional.embedding(wanted.long(), table))
    print(json.dumps({"documents": len(texts), "tokens": int((wanted > PAD).sum()), "seconds": seconds, "right": right}))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
