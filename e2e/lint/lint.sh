#!/bin/bash
# Everything that can be said about the code without running it, as a test: "ok - format", or what a check found and
# "not ok - format". LINT="format tidy" runs only those. What was built before is needed: generated headers.
set -uo pipefail
renice -n 19 $$ >/dev/null # the tests beside it come first
cd "$(dirname "$0")/../.." || exit
B=${B:-build}
here=e2e/lint
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir/tidy
mapfile -t sources < <(git ls-files '*.c')
mapfile -t headers < <(git ls-files '*.h')
mapfile -t scripts < <(git ls-files "*.sh" .ci/run)
status=0

check() { # NAME COMMAND...
    case " ${LINT:-$1} " in *" $1 "*) ;; *) return ;; esac
    local name=$1 began=$SECONDS
    shift
    if "$@"; then echo "ok - lint: $name # $((SECONDS - began)) s"; else echo "not ok - lint: $name"; status=1; fi
}

# clang-tidy's findings depend on the source with all that it includes, and on the checks. What passed once is
# remembered by their hash, in a folder that outlives the build.
tidy_one() { # FILE COMMAND
    local key effort=() option
    # Of the default 225000 states an eleventh. It finds all that 75000 found in nine commits which mended what
    # clang-tidy said, in less than half of the time. FULL=1 explores all.
    [ -n "${FULL:-}" ] || for option in -analyzer-config max-nodes=20000; do
        effort+=(-extra-arg=-Xclang "-extra-arg=$option")
    done
    key=$({ cat .clang-tidy; echo "$tidy_version"; eval "${2/ -c / -E -P }" -o - 2>/dev/null; } | sha256sum | cut -c1-40)
    [ ! -e "$cache/$key" ] || return 0
    clang-tidy-14 --quiet "${effort[@]}" -p "$B/lint" "$1" 2>/dev/null && : >"$cache/$key"
}
export -f tidy_one
export B cache

# The flags that the Makefile compiles each file with: FILE, a tab, COMMAND; and for clang-tidy a database of them.
commands() {
    make -n -B V=1 all check-binaries 2>/dev/null | python3 -c '
import json, os, re, sys
entries = {}
for line in sys.stdin:
    match = re.match(r"\s*(gcc|clang\S*) (.* -c (\S+\.c)) -o", line)
    if match and not match[3].startswith("build"):
        entries.setdefault(match[3], match[1] + " " + re.sub(r" -MMD -MP", "", match[2]))
with open(sys.argv[1], "w") as out:
    json.dump([{"directory": os.getcwd(), "file": f, "command": c} for f, c in entries.items()], out)
for name, command in entries.items():
    print(name, command, sep="\t", end="\0")' "$B/lint/compile_commands.json"
}

tidy() {
    mkdir -p "$B/lint" "$cache"
    tidy_version=$(clang-tidy-14 --version)
    export tidy_version
    # shellcheck disable=SC2016
    commands | xargs -0 -P "$(nproc)" -n 1 bash -c 'IFS=$'"'\t'"' read -r -d "" file command <<<"$0"; tidy_one "$file" "${command%$'"'\n'"'}"'
}

format() {
    clang-format-14 --dry-run -Werror "${sources[@]}" "${headers[@]}"
}

# Each folder by itself: an include names a room, and rooms of two folders may have the same name. uninitvar: it does
# not understand utlist's loops, and clang-tidy looks for the same.
cpp() {
    local folder bad=0
    for folder in transformer runtime-lib agent deviceplugin e2e; do
        git ls-files "$folder/*.c" | cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr \
            --std=c11 --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective \
            --suppress=uninitvar -D_GNU_SOURCE -j "$(nproc)" -I"$folder" -Iruntime-lib/include -Iagent/include --file-list=- || bad=1
    done
    return $bad
}

check format format
check arrows python3 $here/arrows.py
check words python3 $here/words.py
check walks python3 $here/walk.py
check opens python3 $here/opens.py
check spelling codespell -q 3 -L 'ser,te,ans,nd,inout,fo,ot' "${sources[@]}" "${headers[@]}" "${scripts[@]}" ./*.md
check shell shellcheck -S warning "${scripts[@]}"
check threats python3 $here/threats.py
check cppcheck cpp
check results e2e/bench/run --check
check tidy tidy
exit $status
