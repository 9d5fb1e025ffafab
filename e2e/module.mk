# Each part of e2e names its own files.
include $(wildcard e2e/*/module.mk)

SHELL_TESTS  += e2e/arm64.sh e2e/tests/help.sh e2e/tests/summary.sh
# They need programs for arm64.
ARM64_SHELL_TESTS := e2e/arm64.sh deploy/tests/release.sh
# The tests that take longest, the longest first.
LONG_TESTS   += kubelet.sh chart.sh quick-start.sh hostile-pods.sh soak.sh weir-compile.py upgrade.sh images.sh ptxas.sh test-forms test-plugin \
                test-plugin-gpus test-plugin-kubelet test-autotune forms.sh sim.sh real.sh kill.sh test-preempt guest.sh test-transform-size
# A compiler with a deadline, experiments that must see clients being held, and self-tests of the hardware: all need the
# machine to themselves.
SERIAL_TESTS += test-compile-hostile smoke.sh stops.sh channels.sh
