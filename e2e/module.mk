# Each part of e2e names its own files.
include $(wildcard e2e/*/module.mk)

# The tests that take longest, the longest first, and those that measure time.
LONG_TESTS   += kubelet.sh chart.sh soak.sh weir-compile.sh smoke.sh upgrade.sh images.sh ptxas.sh test-forms test-plugin \
                test-choose test-autotune forms.sh sim.sh real.sh kill.sh test-compile-hostile test-preempt guest.sh test-transform-size
