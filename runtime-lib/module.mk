# Linked into every program.
LIBRARIES += base
base_SRC := runtime-lib/base/error.c runtime-lib/base/log.c runtime-lib/base/protocol.c
