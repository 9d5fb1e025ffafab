# Each part of e2e names its own files.
include $(wildcard e2e/*/module.mk)

# The tests that take longest, the longest first.
LONG_TESTS   += kubelet.sh chart.sh soak.sh weir-compile.sh smoke.sh upgrade.sh images.sh ptxas.sh test-forms test-plugin \
                test-autotune forms.sh sim.sh real.sh kill.sh test-preempt guest.sh test-transform-size
# Their deadlines are for a compiler that has a core to itself.
SERIAL_TESTS += test-compile-hostile
