"""libloop-tokens.so from Python: text from a file to token numbers and rows of an embedding table, in memory of the
caller. With documents, a vocabulary, and what the numbers must be."""

import array
import ctypes
import os
import random
import re
import string

ROW, PAD, UNKNOWN = 64, 0, 1  # as in e2e/workloads/loop/token-job.h
MASK = 65536 - 1  # places of the vocabulary, less one


class Pipeline(ctypes.Structure):
    """struct pipeline of e2e/workloads/loop/pipeline.h. Numbers of 64 bits are addresses of device memory."""

    _fields_ = [
        ("path", ctypes.c_char_p), ("documents", ctypes.c_uint32), ("dimension", ctypes.c_uint32), ("mask", ctypes.c_uint32),
        ("offsets", ctypes.c_uint64), ("vocabulary", ctypes.c_uint64), ("table", ctypes.c_uint64),
        ("numbers", ctypes.c_uint64), ("tensor", ctypes.c_uint64), ("blocks", ctypes.c_uint32), ("rounds", ctypes.c_uint32),
    ]  # fmt: skip


def load(library):
    """pipeline_run(pointer to a Pipeline, by loop or not): seconds."""
    run = ctypes.CDLL(os.path.abspath(library)).pipeline_run
    run.restype, run.argtypes = ctypes.c_double, [ctypes.POINTER(Pipeline), ctypes.c_int]
    return run


def hash_of(word):
    value = 14695981039346656037
    for letter in word.encode():
        value = (value ^ letter) * 1099511628211 % 2**64
    return value


def words_of(count):
    return sorted({"".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))) for _ in range(count)})


def vocabulary_of(words):
    """Places of hash and number, each 64 bits."""
    places = [(0, 0)] * (MASK + 1)
    for number, word in enumerate(words, UNKNOWN + 1):
        at = hash_of(word) & MASK
        while places[at][0]:
            at = (at + 1) & MASK
        places[at] = hash_of(word), number
    return array.array("Q", [word for place in places for word in place])


def documents_of(words, count):
    strange = ["unheard", "of"]
    return [" ".join(random.choices(words + strange, k=random.randint(5, 2 * ROW))) + "\n" for _ in range(count)]


def offsets_of(texts):
    """Where each document begins in the file, and where the last ends."""
    offsets = array.array("Q", [0])
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return offsets


def numbers_of(texts, words):
    """A row of numbers for each document, by a dictionary."""
    known = {word: number for number, word in enumerate(words, UNKNOWN + 1)}
    rows = [[known.get(word, UNKNOWN) for word in re.findall("[a-z]+", text)][:ROW] for text in texts]
    return [row + [PAD] * (ROW - len(row)) for row in rows]
