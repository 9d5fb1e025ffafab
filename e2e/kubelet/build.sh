#!/bin/bash
# Builds the pinned kubelet, kube-apiserver, kube-scheduler, kube-controller-manager and etcd from the Go
# module proxy and prints the folder that they are in; `build.sh helm` does so for helm, `build.sh all` for the five
# as one program, which is a third as large. Built once for each go.mod and go.sum, in ~/.cache/weir; takes ten
# minutes and 2 GB the first time, nothing later.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-kube}
[ "$what" = kube ] || here=$here/$what
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
key=$({ cat "$here"/go.{mod,sum} && cat "$here"/*.go 2> /dev/null || :; } | sha256sum | cut -c1-16)
bin=$cache/$what-$key
toolchain=golang.org/toolchain@v0.0.1-go1.24.13.linux-$(dpkg --print-architecture)
declare -A programs=([kube]="kubelet kube-apiserver kube-scheduler kube-controller-manager etcd" [helm]=helm [all]=kube-all)

say() { echo "kubelet/build: $*" >&2; }

built() {
	local program
	for program in ${programs[$what]}; do
		[ -x "$bin/$program" ] || return 1
	done
}

# What says which Kubernetes it is.
version_flags() {
	local kubernetes minor version=k8s.io/component-base/version
	kubernetes=$(sed -n "s/^require k8s.io.kubernetes //p" "$here/go.mod")
	minor=${kubernetes#v1.}
	echo "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
}

if built; then
	echo "$bin"
	exit 0
fi

new_enough() {
	[ -x "$1" ] && printf 'go1.24\n%s\n' "$("$1" env GOVERSION)" | sort -VC
}

# Prints a go of 1.24 or later: the one on the PATH, or the toolchain that Go's module proxy serves
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

build_kube() {
	"$go" build -ldflags "$(version_flags)" -o "$out/" k8s.io/kubernetes/cmd/{kubelet,kube-apiserver,kube-scheduler,kube-controller-manager}
	"$go" build -ldflags '-s -w' -o "$out/etcd" go.etcd.io/etcd/server/v3
}

build_all() {
	"$go" build -ldflags "$(version_flags)" -o "$out/kube-all" .
}

build_helm() {
	"$go" build -ldflags '-s -w' -o "$out/" helm.sh/helm/v3/cmd/helm
}

mkdir -p "$cache"
exec 9> "$cache/build.lock"
flock 9
if built; then # by somebody else, meanwhile
	echo "$bin"
	exit 0
fi
go=$(find_go)
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS='-mod=readonly -trimpath -buildvcs=false'
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
