"""What if a kernel's blocks did not save their state, but waited where they are (PEP's in-place saving)? On each SM one to
three blocks of LOW fit beside one of HIGH's. They wait there, and look at a word of the host, or they save their shared
memory and leave. Forms of Weir only do the latter: this experiment shows what the former would gain."""

from bursts import LOW

SHOWS = "blocks that wait on their SMs beside a newcomer's, against saving them: the newcomer's time, and until they work again"
PAPER = "PEP section IV"
BOUNDS = {}
BASELINES = ("the newcomer alone", "blocks that save what they hold, and leave")
NEEDS = ("gpu",)
SIMULATED = True
PRINTED = ("the newcomer, while",)

PER_SM = (1, 2, 3)  # blocks of 512 threads; an SM has 2048, and the newcomer takes 512


def measure(bench, per_sm):
    argv = [bench.node.bench("bench-in-place"), *bench.node.sizes, "--per-sm", str(per_sm)]
    return bench.node.start("bench-in-place", argv, LOW, False, files=False).result()


def show(bench, per_sm, found):
    where = f"{per_sm} {'block' if per_sm == 1 else 'blocks'} of {found['shared'] >> 10} KiB on each SM"
    what = f"the newcomer, while {where} wait"
    if not found["fits"]:
        bench.report.add(what, "it does not begin")
        return
    mid = {name: of["p50"] for name, of in found.items() if isinstance(of, dict)}
    late = {name: of["p99"] for name, of in found.items() if isinstance(of, dict)}
    bench.report.add(
        what, f"{mid['beside'] / mid['after']:.3f}x of after they have left",
        baselines=f"{mid['beside']:.1f} us, p99 {late['beside']:.1f}; after {mid['after']:.1f}, p99 {late['after']:.1f}; "
        f"alone {mid['alone']:.1f}, p99 {late['alone']:.1f}")
    bench.report.add(
        f"until {where} wait", f"{mid['wait']:.1f} us",
        baselines=f"p99 {late['wait']:.1f}; until they have saved and left {mid['leave']:.1f}, p99 {late['leave']:.1f}")
    bench.report.add(
        f"until {where} work again", f"{mid['resume']:.1f} us",
        baselines=f"p99 {late['resume']:.1f}; launched again {mid['relaunch']:.1f}, p99 {late['relaunch']:.1f}")


def run(bench):
    bench.node.stop_mps()
    for per_sm in PER_SM[:1] if bench.node.simulated else PER_SM:
        show(bench, per_sm, measure(bench, per_sm))
