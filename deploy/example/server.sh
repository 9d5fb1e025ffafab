#!/bin/sh
# An important pod: requests of many kernels, with pauses. It prints how long each request took.
trap 'exit 0' TERM INT
if [ -n "${WEIR_SIM_DIR:-}" ]; then
    set -- --kernels 40 --gap-min-us 10000 --gap-max-us 30000
else
    set -- --gpu --length-us 175 --kernels 20
fi
burst "$@" --requests 1000000 --log /dev/stdout | sed -u 's/^[^ ]* \([0-9]*\)\([0-9]\{3\}\).*/request: \1.\2 ms/' &
# A signal ends `wait`, not a command.
wait $!
