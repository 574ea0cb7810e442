#!/bin/sh
# Builds the parts of a test cluster with Go, once, into a cache outside the checkout, and prints the folder as the last
# line.
set -eu
. "$(dirname "$0")/settings.sh"
. "$here/../go.sh"

# Kubernetes' own go.mod finds its parts in neighbouring folders; each is also published, as v0 with the same numbers.
build_kubernetes() {
  cp -r "$here/kubernetes" "$work/kubernetes"
  cd "$work/kubernetes"
  go mod download "k8s.io/kubernetes@v$version"
  from=$(go env GOMODCACHE)/k8s.io/kubernetes@v$version
  part=v0.${version#1.}
  sed -E -e 's|^module .*|module kubernetes|' -e "s|(k8s.io/[a-z-]+) v0\.0\.0\$|\1 $part|" \
    -e "s|(k8s.io/[a-z-]+) => \./staging.*|\1 => \1 $part|" "$from/go.mod" >go.mod
  cat "$from/go.sum" >go.sum
  go mod edit -require "k8s.io/kubernetes@v$version"
  minor=${version#1.}
  says=k8s.io/component-base/version
  go build -ldflags "-s -w -X $says.gitVersion=v$version -X $says.gitMajor=1 -X $says.gitMinor=${minor%.*}" -o "$work/bin/kubernetes" .
}

build_parts() {
  cp -r "$here/parts" "$work/parts"
  cd "$work/parts"
  go build -ldflags '-s -w' -o "$work/bin/parts" .
}

pack() { "$here/image.sh" "$@" >"$work/images/$(basename "${1%:*}").tar"; }

pack_images() {
  mkdir -p "$work/images" "$work/pause" "$work/coredns" "$work/base/bin"
  gcc -Os -static -s -o "$work/pause/pause" "$here/pause.c"
  pack berth.test/pause:1 "$work/pause" /pause 65535
  cp "$work/bin/parts" "$work/coredns/coredns"
  pack berth.test/coredns:1 "$work/coredns" /coredns 65534
  mkdir -m 1777 "$work/base/tmp"
  mkdir "$work/base/etc"
  cp "$(command -v busybox)" "$work/base/bin/busybox"
  busybox --list | grep -vx busybox | xargs -I {} ln -s busybox "$work/base/bin/{}"
  pack berth.test/base:1 "$work/base"
}

"$here/packages.sh" >&2
if [ ! -d "$home" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/kubernetes.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  mkdir "$work/bin"
  {
    (build_kubernetes)
    (build_parts)
    (pack_images)
  } >&2
  for program in etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
    ln -s kubernetes "$work/bin/$program"
  done
  for program in netpol volumes; do ln -s parts "$work/bin/$program"; done
  rm -rf "$work/kubernetes" "$work/parts" "$work/pause" "$work/coredns" "$work/base"
  # The rename makes the folder appear whole, even if two builds run at once.
  mv -T "$work" "$home" || [ -d "$home" ]
fi
echo "$home"
