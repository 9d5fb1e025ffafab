# The event loop and NVML are the device plugin's, too.
LIBRARIES += loop
loop_SRC      := agent/loop.c
loop_CPPFLAGS := -Iagent/include
