# Sourced by shell tests whose claims are that commands succeed. They end with `exit $status`.
# shellcheck shell=bash disable=SC2034
status=0

# Runs in this shell; says what the command said only if it failed.
check() { # WHAT COMMAND...
    local check_what=$1 check_output
    shift
    check_output=$(mktemp)
    if "$@" > "$check_output" 2>&1; then
        echo "ok - $check_what"
    else
        echo "not ok - $check_what"
        sed 's/^/# /' "$check_output" | head -20
        status=1
    fi
    rm -f "$check_output"
}
