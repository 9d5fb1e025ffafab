"""Requests and how long they take."""


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def length(bench, seconds):
    return 0.3 if bench.node.simulated else seconds


def turnarounds(answers):
    return [(end - launch) / 1e3 for answer in answers for launch, end in answer["rounds"]]
