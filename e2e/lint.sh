#!/bin/bash
# Everything that can be said about the code without running it. Each check prints what it finds; the exit
# status says whether any found something. LINT="format tidy" runs only those.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
mapfile -t sources < <(git ls-files '*.c')
mapfile -t headers < <(git ls-files '*.h')
mapfile -t scripts < <(git ls-files "*.sh" .ci/run)
status=0

check() { # NAME COMMAND...
    case " ${LINT:-$1} " in *" $1 "*) ;; *) return ;; esac
    local name=$1
    shift
    if "$@"; then echo "lint: $name ok"; else echo "lint: $name FAILED"; status=1; fi
}

format() {
    clang-format-14 --dry-run -Werror "${sources[@]}" "${headers[@]}"
}

# A folder may include public headers only of folders to its left.
arrows() {
    local bad
    bad=$(
        grep -nE '#include ".*(agent|deviceplugin|runtime-lib|e2e)/' -r transformer
        grep -nE '#include ".*(agent|deviceplugin|e2e)/' -r runtime-lib
        grep -nE '#include ".*(deviceplugin|e2e|runtime-lib)/' -r agent
        grep -nE '#include ".*(e2e|runtime-lib|agent)/' -r deviceplugin
        grep -nE 'include.*grpc/' -r deviceplugin --include='*.[ch]' | grep -v '^deviceplugin/rpc.c:'
    )
    [ -z "$bad" ] || { echo "$bad"; return 1; }
}

# The flags that the Makefile compiled each file with.
commands() {
    make -n -B V=1 all check-binaries 2>/dev/null | python3 -c '
import json, os, re, shlex, sys
seen, out = set(), []
for line in sys.stdin:
    m = re.match(r"\s*(gcc|clang\S*) .* -c (\S+\.c) -o", line)
    if m and m[2] not in seen and not m[2].startswith("build"):
        seen.add(m[2])
        out.append({"directory": os.getcwd(), "file": m[2], "command": line.strip()})
json.dump(out, open(sys.argv[1], "w"))' "$1"
}

tidy() {
    mkdir -p "$B/lint"
    commands "$B/lint/compile_commands.json"
    python3 -c '
import json, sys
for entry in json.load(open(sys.argv[1])): print(entry["file"])' "$B/lint/compile_commands.json" |
        xargs -P "$(nproc)" -n 1 clang-tidy-14 --quiet -p "$B/lint" 2>/dev/null
}

cpp() {
    cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 \
        --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective -D_GNU_SOURCE \
        -j "$(nproc)" -Iruntime-lib/include -Iagent/include "${sources[@]}"
}

check format format
check arrows arrows
check spelling codespell -q 3 -L 'ser,te,ans,nd,inout,fo,ot' "${sources[@]}" "${headers[@]}" "${scripts[@]}" ./*.md
check shell shellcheck -S warning "${scripts[@]}"
check cppcheck cpp
check results python3 e2e/gpu/newest.py e2e/bench/RESULTS.md --check
check tidy tidy
exit $status
