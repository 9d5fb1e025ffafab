# The helpers of every shell test. Source it in the repository's root; end the test with `exit $failed`.
# shellcheck shell=bash disable=SC2034
B=${B:-build}
failed=0
report_log= # a file whose end is shown when something fails

# report STATUS WHAT: one line of TAP.
report() {
    if [ "$1" -eq 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        failed=1
        [ -z "$report_log" ] || tail -n 3 "$report_log" | sed 's/^/# /'
    fi
}

# check WHAT COMMAND...: the command succeeds. It runs in this shell; its output is shown if it fails.
check() {
    local check_what=$1 check_output check_status
    shift
    check_output=$(mktemp)
    "$@" >"$check_output" 2>&1
    check_status=$?
    report $check_status "$check_what"
    [ $check_status -eq 0 ] || sed 's/^/# /' "$check_output" | head -n 20
    rm -f "$check_output"
}

# eventually SECONDS COMMAND...: the command succeeds before that time is over.
eventually() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}
