#!/bin/sh
# An unimportant pod, which keeps the GPU full.
trap 'exit 0' TERM INT
[ -n "${WEIR_SIM_DIR:-}" ] || set -- --gpu
filler "$@" --waves 8 --stop-file /tmp/stop &
wait $!
