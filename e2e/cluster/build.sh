#!/bin/bash
# Usage: build.sh kube|operator|helm. Builds pinned programs from the Go module proxy and prints the folder that has them.
#
#   kube       kubelet, kube-apiserver, kube-scheduler, kube-controller-manager, etcd: links to one program, kube-all
#   operator   kubeadm, kubectl, kube-proxy: links to one program, operator-all
#   helm       helm
#
# All are from the same modules, so that they share what is compiled. Each is built once for a go.mod, go.sum and main.go, into ~/.cache/weir: minutes and 2 GB the first time.
# KUBERNETES=newest takes the Kubernetes of newest.mod instead. `make test` does not, because it takes as long again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)/kube
what=${1:-kube}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
declare -A compilers=([go]=1.24.13 [newest]=1.26.8)
pins=go
[ "$what" = helm ] || [ "${KUBERNETES:-}" != newest ] || pins=newest
key=$(cat "$here"/{$pins.mod,$pins.sum,main.go,operator/main.go} | sha256sum | cut -c1-16)
bin=$cache/$what-$key
compiler=${compilers[$pins]}
toolchain=golang.org/toolchain@v0.0.1-go$compiler.linux-$(dpkg --print-architecture)
declare -A programs=([kube]="kubelet kube-apiserver kube-scheduler kube-controller-manager etcd"
    [operator]="kubeadm kubectl kube-proxy" [helm]=helm)

say() { echo "cluster/build: $*" >&2; }

built() {
    local program
    for program in ${programs[$what]}; do
        [ -x "$bin/$program" ] || return 1
    done
}

# The linker sets the version that Kubernetes reports.
version_flags() {
    local kubernetes minor version=k8s.io/component-base/version
    kubernetes=$(sed -En "s/^(require|\t)? ?k8s.io.kubernetes (v[0-9.]+)$/\2/p" "$here/$pins.mod")
    minor=${kubernetes#v1.}
    echo "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
}

if built; then
    echo "$bin"
    exit 0
fi

new_enough() {
    [ -x "$1" ] && printf 'go%s\n%s\n' "${compiler%.*}" "$("$1" env GOVERSION)" | sort -VC
}

# Prints a go that is new enough: the one on the PATH, or the toolchain that Go's module proxy serves
# to any older one.
find_go() {
    local go
    go=$(command -v go || true)
    if new_enough "$go"; then
        echo "$go"
        return
    fi
    if [ -z "$go" ]; then
        say "installing Debian's Go to fetch a newer one"
        $([ "$(id -u)" = 0 ] || echo sudo) apt-get install -y --no-install-recommends golang-go >&2
        go=$(command -v go)
    fi
    say "fetching $toolchain"
    local root=$cache/go
    if ! new_enough "$root/bin/go"; then
        local fetched
        fetched=$(cd / && GOFLAGS=-modcacherw GOMODCACHE=$cache/go-fetch "$go" mod download -json "$toolchain" |
            jq -re .Dir)
        rm -rf "$root"
        mv "$fetched" "$root"
        rm -rf "$cache/go-fetch"
        chmod -R +x "$root/bin" "$root/pkg/tool"
    fi
    echo "$root/bin/go"
}

# all_in_one PACKAGE
all_in_one() {
    local program
    "$go" build -ldflags "$(version_flags)" -o "$out/$what-all" "$1"
    for program in ${programs[$what]}; do ln -s "$what-all" "$out/$program"; done
}

build_kube() {
    all_in_one .
}

build_operator() {
    all_in_one ./operator
}

build_helm() {
    "$go" build -ldflags '-s -w' -o "$out/" helm.sh/helm/v3/cmd/helm
}

mkdir -p "$cache"
exec 9> "$cache/build.lock"
flock 9
if built; then # another run has built it meanwhile
    echo "$bin"
    exit 0
fi
go=$(find_go)
# A compiler that collects less garbage needs a fifth less time. Nobody debugs these programs.
export CGO_ENABLED=0 GOTOOLCHAIN=local GOGC=400 GOFLAGS="-modfile=$here/$pins.mod -mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
unset GOROOT
say "building $what with $("$go" version); this happens once"
out=$(mktemp -d "$cache/$what-XXXXXX")
trap 'rm -rf "$out"' EXIT
cd "$here"
"build_$what" >&2
chmod 755 "$out"
rm -rf "$bin"
mv "$out" "$bin"
trap - EXIT
echo "$bin"
