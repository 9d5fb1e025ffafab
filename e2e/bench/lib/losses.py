"""What a LOW with large kernels loses to a HIGH with few blocks, in each way of sharing (FLEP's figure 15)."""

import dataclasses
import statistics

WAYS = MPS, PRIORITY, TEMPORAL, SPATIAL = "MPS", "MPS + stream priority", "temporal", "spatial"
WITHOUT_WEIR = MPS, PRIORITY


@dataclasses.dataclass
class Seen:
    """Of a pair. @typical, @p99: HIGH's us, @rates: LOW's rounds a second; each by way. @alone, @plain: LOW's rate alone,
    with Weir and without."""

    typical: dict
    p99: dict
    rates: dict
    alone: float
    plain: float

    def loss(self, way):
        """The part of LOW's rate alone, in the same form of its kernel. Negative: LOW is faster beside HIGH. With Weir that
        is so where its launches go on in their native form, which has places for HIGH's blocks."""
        return 1 - self.rates[way] / (self.plain if way in WITHOUT_WEIR else self.alone)

    def overhead(self, way):
        """A preemption gives nothing back, so a negative loss is none."""
        return max(0, self.loss(way))

    def native_loss(self, way):
        """The part of LOW's rate alone without Weir: what its form costs is a loss, too."""
        return 1 - self.rates[way] / self.plain

    def slower(self, times):
        """HIGH's time with spatial preemption against temporal. @times: typical or p99."""
        return times[SPATIAL] / times[TEMPORAL]


def less(pairs, loss):
    """By how many per cent of it a LOW loses less with spatial preemption than with temporal. @pairs: of one LOW, @loss: a method
    of Seen. As in the paper, losses are means over all HIGH."""
    temporal, spatial = (statistics.fmean(loss(pair, way) for pair in pairs) for way in (TEMPORAL, SPATIAL))
    return 100 * (1 - spatial / temporal) if temporal > 0 else 0
