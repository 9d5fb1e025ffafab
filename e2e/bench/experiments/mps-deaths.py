"""LOW dies again and again in a long kernel beside HIGH's short requests: killed, by a bad address, by an assertion. In its
own MPS server, beside which HIGH goes on, and in HIGH's, where HIGH dies with it. What of HIGH's wait is the driver's shows
the same death without Weir: HIGH outside MPS, LOW in a server, so that the driver has the same to clean up."""

import math

import bursts
import deaths
from level_servers import levels
from report import at_most
from servers import quantile

SHOWS = "what HIGH notices when LOW dies in another MPS server (51 times)"
PAPER = ""
AT_DEATH = "HIGH's longest request at a death or the next start, p99 of deaths"
NOTICED, BY_DRIVER = f"{AT_DEATH}, against those while LOW runs", f"{AT_DEATH}, against the driver alone"
AS_SLICED = "HIGH's requests, p99 against time-slicing + Weir"
BOUNDS = {NOTICED: at_most(1.1), BY_DRIVER: at_most(1.1), AS_SLICED: at_most(1.05)}
BASELINES = ("the driver alone, HIGH outside MPS", "the driver alone, time-slicing", "time-slicing + Weir", "one MPS server for all")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

DEATHS, DEATHS_OF_BASELINE = 17, 5  # of each kind; 17 for what is judged, and what it is judged against
DEATHS_SIMULATED = 1
FULL_SECONDS = 4  # of a measurement, with which all deaths take place


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
        bench.report.holds(f"{where}: LOW dies of {kind}", found.died == n, f"{found.died} of {n} deaths", str(found))
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
    found = beside(bench, "the driver alone, HIGH outside MPS", DEATHS, weir=False, high_under_mps=False)
    node.stop_mps()
    return found


def judge(bench, kind, what, own, other):
    """@own, @other: us, of which the 99th percentiles are compared."""
    of_own, of_other = quantile(own, 0.99), quantile(other, 0.99)
    shown = f"{of_own / 1e3:.1f} ms (n={len(own)}), {of_other / 1e3:.1f} ms (n={len(other)})"
    bench.report.judge(f"{kind}: {what}", of_own / of_other, BOUNDS[what], shown)


def judge_kinds(bench, found, driver, sliced):
    """Kind to Deaths, each: with a server for each level, of the driver alone, of time-slicing + Weir."""
    for kind, deaths_of in found.items():
        at_deaths = deaths_of.cleaned_up()
        judge(bench, kind, NOTICED, at_deaths, deaths_of.undisturbed())
        if kind in driver:
            judge(bench, kind, BY_DRIVER, at_deaths, driver[kind].cleaned_up())
        if kind in sliced:
            ratio = deaths_of.high["p99"] / sliced[kind].high["p99"]
            bench.report.judge(f"{kind}: {AS_SLICED}", ratio, BOUNDS[AS_SLICED], bursts.figures(deaths_of.high))


def with_weir(bench, driver):
    bench.node.ensure_agent()
    sliced = beside(bench, "time-slicing + Weir", DEATHS_OF_BASELINE)
    with levels(bench):
        found = beside(bench, "a server for each level", DEATHS)
    judge_kinds(bench, found, driver, sliced)


def with_one_server(bench):
    """The fault domain that servers for each level avoid: HIGH dies with LOW."""
    bench.node.ensure_mps()
    bench.node.ensure_agent()
    try:
        for kind in deaths.KINDS:
            found = deaths.deaths(bench, kind, number(bench, DEATHS))
            figure = f"lives on after {found.died} deaths" if found.high else f"dies at death {found.died}: {found.words}"
            bench.report.holds(f"one server for all: HIGH dies with LOW, {kind}", found.high is None, figure, str(found))
    finally:
        bench.node.stop_mps()


def run(bench):
    with_weir(bench, without_weir(bench))
    if not bench.node.simulated:
        with_one_server(bench)
