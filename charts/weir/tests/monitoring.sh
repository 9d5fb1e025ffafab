#!/bin/bash
# Alerts and dashboard: promtool checks the rules, runs their tests, and checks all expressions of the dashboard.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
. e2e/tap.sh
files=charts/weir/files
dir=$(mktemp -d /tmp/weir-monitoring-XXXXXX)
trap 'rm -rf "$dir"' EXIT

# Turns each expression into a rule, with Grafana's variables filled in.
dashboard_rules() {
    jq '{groups: [{name: "dashboard", rules: [.panels[].targets[]?.expr | gsub("\\$__rate_interval"; "5m") |
        gsub("\\$(namespace|gpu)"; ".*")] | to_entries | map({record: "expression:\(.key)", expr: .value})}]}' \
        $files/dashboard.json > "$dir/rules.yaml"
}

check "no two panels have the same id" jq -e '[.panels[].id] | length == (unique | length)' $files/dashboard.json
check "no panel overlaps another" jq -e '[.panels[] | .gridPos | range(.x; .x + .w) as $x | range(.y; .y + .h) as $y | [$x, $y]] |
    length == (unique | length)' $files/dashboard.json
check "all panels have an expression" jq -e '[.panels[] | select(.type != "row") | .targets | length > 0] | all' $files/dashboard.json
# Names of metrics, without the suffixes of histograms.
families() {
    sed -E 's/_(bucket|sum|count)$//' | sort -u
}
# Without the rows {old, new} of deprecated names.
told() {
    grep -hv '{"weir_[a-z_]*", "weir_' agent/*/*.c deviceplugin/metrics.c | grep -ohE '"(weir|process)_[a-z_]+' | tr -d '"' | families
}
asked() {
    grep -ohwE '(weir|process)_[a-z_]+' $files/alerts.yaml $files/dashboard.json | families
}
none_of() { # FILE
    ! grep . "$1"
}
comm -13 <(told) <(asked) > "$dir/untold"
check "they use only metrics that the agent and the device plugin export" none_of "$dir/untold"
comm -13 <(grep -owE 'weir_[a-z_]+' deploy/docs/metrics.md | families) <(told | grep ^weir_) > "$dir/unlisted"
check "deploy/docs/metrics.md lists all metrics" none_of "$dir/unlisted"
promtool=$(type -P promtool || echo "${XDG_CACHE_HOME:-$HOME/.cache}/weir/promtool")
if [ ! -x "$promtool" ]; then
    echo "ok - rules and expressions # SKIP no promtool; make setup fetches it on Debian and Ubuntu"
    exit $failed
fi
check "the alerts are valid" "$promtool" check rules $files/alerts.yaml
check "they fire when they should, and only then" "$promtool" test rules charts/weir/tests/alerts.yaml
check "the dashboard is valid JSON" dashboard_rules
check "its expressions are valid" "$promtool" check rules --lint=none "$dir/rules.yaml"
exit $failed
