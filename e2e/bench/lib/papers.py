"""The kernels of FLEP and EffiSha, and how long each lasts there. A round of ours repeats its passes over the data until it
lasts as long: otherwise kernels would end within 0.1 to 1.5 ms on an H200."""

from workers import Job

# FLEP, table 1: our workload, its kernel, us of the kernel with the large and with the small input.
FLEP = {
    "CFD": ("euler", "euler_fluxes", 11106, 521),
    "NN": ("nearest-neighbour", "nearest_distance", 15775, 728),
    "PF": ("path-find", "path_find", 7364, 811),
    "PL": ("particle-filter", "filter_resample", 5419, 952),
    "MD": ("molecular-dynamics", "md_forces", 15905, 938),
    "SPMV": ("sparse-multiply", "sparse_multiply", 5840, 484),
    "MM": ("matrix-multiply", "matrix_multiply", 2579, 1499),
    "VA": ("vector-add", "vector_add", 30634, 720),
}
# Elements of the small input, where whole passes over the usual one would miss the time by more than 2 %.
FINER = {"MD": 64, "SPMV": 1 << 15, "MM": 320, "VA": 1 << 23}
LARGE = ("CFD", "NN", "PF", "PL")  # section 6.3.1: kernels of low priority
SHORT = ("MD", "MM", "SPMV", "VA")  # section 6.3.1: small kernels of figure 10
# EffiSha, table 2: our workload and its kernel; ms alone, then priorities: random, in groups, shortest first.
EFFISHA = {
    ("neural-net", "net_layer"): (14.25, 2, 2, 1), ("radix-sort", "radix_count"): (5.46, 17, 2, 4),
    ("reduction", "reduction"): (2.06, 17, 2, 7), ("md5-search", "md5_search"): (3.29, 22, 5, 6),
    ("molecular-dynamics", "md_forces"): (13.8, 22, 5, 2), ("scan", "scan_tiles"): (1.41, 7, 5, 8),
    ("triad", "triad"): (1.22, 3, 8, 9), ("stencil", "stencil_9"): (28.4, 20, 8, 0),
    ("fft", "fft_512"): (1.17, 24, 11, 10), ("sparse-multiply", "sparse_multiply"): (4.57, 7, 11, 5),
    ("graph-search", "graph_level"): (5.99, 1, 11, 3),
}  # fmt: skip


def large(name):
    workload, kernel, us, _ = FLEP[name]
    return Job(workload, kernel=kernel, us=us)


def small(name, tenant=""):
    workload, kernel, _, us = FLEP[name]
    return Job(workload, tenant=tenant, kernel=kernel, us=us, elements=FINER.get(name, 0))


def pairs():
    """(large, small): 28, as in FLEP's figures 8, 9, 13 and 14."""
    return [(a, b) for a in LARGE for b in FLEP if b != a]


def name(job):
    return next((short for short, (workload, *_) in FLEP.items() if workload == job.workload), job.workload)
