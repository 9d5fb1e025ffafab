#!/bin/bash
# The script against an API server that a `curl` of ours plays: what it asks for, and what it changes.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. e2e/tap.sh
dir=$(mktemp -d /tmp/weir-unlabel-XXXXXX)
trap 'rm -rf "$dir"' EXIT

cat > "$dir/curl" << 'C'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -X) method=$2 ;;
    --data) data=$2 ;;
    https://*) url=$1 ;;
    esac
    shift
done
echo "$method $url ${data:-}" >> "$SEEN"
[ "$method" = PATCH ] || cat "$ANSWER"
C
chmod +x "$dir/curl"
mkdir "$dir/account"
touch "$dir/account/token" "$dir/account/ca.crt"
sed "s,^account=.*,account=$dir/account," deploy/api-server.sh > "$dir/api-server.sh"
cp deploy/unlabel-nodes.sh "$dir/script"
export SEEN=$dir/seen ANSWER=$dir/answer KUBERNETES_SERVICE_HOST=api KUBERNETES_SERVICE_PORT=443
script() {
    rm -f "$SEEN"
    PATH=$dir:$PATH sh "$dir/script"
}
saw() {
    grep -qxF -- "$1" "$SEEN"
}

node() { # NAME LABELS
    printf '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"%s","uid":"u","labels":{"kubernetes.io/os":"linux",%s},' "$1" "$2"
    printf '"managedFields":[{"manager":"a","fieldsV1":{"f:metadata":{"f:labels":{"f:weir.dev/gpu.old":{}}}}}]}}'
}
{
    printf '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":['
    node one '"weir.dev/gpu.count":"2","weir.dev/gpu.weir-version":"0.1.0","weir.dev/other":"x"'
    printf ,
    node two '"weir.dev/gpu.mig":"true","weir.dev/gpu.weir-version":"0.1.0"'
    printf ']}\n'
} > "$ANSWER"
check "it runs" script
check "it asks for the nodes that have labels" saw 'GET https://api:443/api/v1/nodes?labelSelector=weir.dev/gpu.weir-version&pretty=false '
patch='{"metadata":{"labels":{"weir.dev/gpu.count":null,"weir.dev/gpu.mig":null,"weir.dev/gpu.weir-version":null}}}'
check "the first node loses ours, and no others" saw "PATCH https://api:443/api/v1/nodes/one $patch"
check "so does the second" saw "PATCH https://api:443/api/v1/nodes/two $patch"
echo '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}' > "$ANSWER"
check "no nodes are no error" script
check "and nothing is changed" test "$(grep -c PATCH "$SEEN")" = 0
KUBERNETES_SERVICE_HOST=fd00::1 script
check "an address of IPv6 stands in brackets" saw 'GET https://[fd00::1]:443/api/v1/nodes?labelSelector=weir.dev/gpu.weir-version&pretty=false '
exit $failed
