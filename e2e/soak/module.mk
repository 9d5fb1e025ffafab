# The soak, in its short form; `make soak` has the long one.
SHELL_TESTS += e2e/soak/tests/check.py e2e/soak/soak.sh
SHARED += librealtime.so
librealtime.so_SRC := e2e/soak/realtime.c
