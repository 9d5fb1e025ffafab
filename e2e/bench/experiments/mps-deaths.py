"""LOW dies again and again in a long kernel beside HIGH's short requests: killed, by a bad address, by an assertion. In its
own MPS server, beside which HIGH goes on, and in HIGH's, where HIGH dies with it. What of HIGH's wait is the driver's shows
the same death without Weir: HIGH outside MPS, LOW in a server, so that the driver has the same to clean up."""

import math

import bursts
import deaths
from level_servers import levels
from report import at_most

SHOWS = "what HIGH notices when LOW dies in another MPS server (51 times), against the driver alone"
PAPER = ""
BOUNDS = {"HIGH's longest request at a death or the next start, against the driver alone": at_most(1.1)}
BASELINES = ("the driver alone, HIGH outside MPS", "the driver alone, time-slicing", "time-slicing + Weir", "one MPS server for all")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

DEATHS, DEATHS_OF_BASELINE = 17, 5  # of each kind
DEATHS_SIMULATED = 1
FULL_SECONDS = 4  # of a measurement, with which all deaths take place
ONE_SERVER_DEATHS = 3


def number(bench, full):
    if bench.node.simulated:
        return DEATHS_SIMULATED
    n = min(full, max(3, math.ceil(full * bench.seconds / FULL_SECONDS)))
    if n < full:
        bench.report.cut(f"{n} deaths of a kind, not {full}")
    return n


def show_phase(bench, what, found, phase):
    """The longest request while LOW is in a phase: of the deaths the median one, and the worst one."""
    worst, middle = found.worst(phase), found.middle(phase)
    begin = f"; the worst begins {1e3 * worst.after:+.0f} ms from the death" if phase == "dies" else ""
    bench.report.add(f"{what}, while LOW {phase}", f"{middle / 1e3:.1f} ms, worst {worst.us / 1e3:.1f} ms{begin}")


def beside(bench, where, full, weir=True, high_under_mps=True):
    """Kind to its deaths.Deaths, of kinds of which HIGH has lived on."""
    all_found, n = {}, number(bench, full)
    for kind in deaths.KINDS:
        found = deaths.deaths(bench, kind, n, weir, high_under_mps)
        bench.report.holds(f"{where}: LOW dies of {kind}", found.died > 0, f"{found.died} deaths", str(found))
        bench.report.holds(f"{where}: HIGH lives on, {kind}", found.high is not None, found.words or f"after {found.died} deaths")
        if not found.high or not found.longest:
            continue
        all_found[kind] = found
        what = f"{where}, {kind}: HIGH's longest request"
        bench.report.add(f"{where}, {kind}: HIGH's requests", bursts.figures(found.high))
        for phase in deaths.PHASES:
            show_phase(bench, what, found, phase)
    return all_found


def without_weir(bench):
    """The driver alone, as two servers and as time-slicing."""
    node = bench.node
    node.stop_agent()
    node.stop_mps()
    beside(bench, "the driver alone, time-slicing", DEATHS_OF_BASELINE, weir=False)
    node.ensure_mps()
    found = beside(bench, "the driver alone, HIGH outside MPS", DEATHS_OF_BASELINE, weir=False, high_under_mps=False)
    node.stop_mps()
    return found


def with_weir(bench, driver):
    bench.node.ensure_agent()
    beside(bench, "time-slicing + Weir", DEATHS_OF_BASELINE)
    with levels(bench):
        found = beside(bench, "a server for each level", DEATHS)
    for title, bound in BOUNDS.items():
        for kind in (kind for kind in deaths.KINDS if kind in found and kind in driver):
            own, theirs = found[kind].cleaned_up(), driver[kind].cleaned_up()
            shown = f"median of deaths: {own / 1e3:.1f} ms, the driver's {theirs / 1e3:.1f} ms"
            bench.report.judge(f"{kind}: {title}", own / theirs, bound, shown)


def with_one_server(bench):
    bench.node.ensure_mps()
    bench.node.ensure_agent()
    try:
        found = deaths.deaths(bench, "kill", ONE_SERVER_DEATHS)
        figure = f"HIGH lives on after {found.died} deaths" if found.high else f"HIGH dies at death {found.died}: {found.words}"
        bench.report.add("one server for all", figure, baselines=str(found))
    finally:
        bench.node.stop_mps()


def run(bench):
    with_weir(bench, without_weir(bench))
    if not bench.node.simulated:
        with_one_server(bench)
