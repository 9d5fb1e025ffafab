#!/usr/bin/env python3
"""Weir on a real kubelet with real pods, from installation to its end. Called by cluster.sh."""

import signal
import sys

import cluster_parts
import pods
import suite


class ClusterSuite(suite.Suite):
    def add_options(self, parser):
        parser.add_argument("--work", required=True, help="the node's folder")

    def make_node(self, options):
        return pods.Cluster(options.bundle, options.work, options.simulated)

    def prepare(self, bench):
        super().prepare(bench)
        cluster_parts.install(bench)


if __name__ == "__main__":
    # Whoever ends it gets the table of what there is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(ClusterSuite("e2e/gpu/cluster.sh", __doc__, cluster_parts.PARTS, 2).main())
