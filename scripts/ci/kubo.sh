#!/bin/sh
# Builds Kubo with Go, once, into a cache outside of the checkout, and prints the path of the binary
# as the last line: BERTH_TEST_KUBO=$(scripts/ci/kubo.sh | tail -n 1)
set -eu

version=v0.43.0
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/kubo-${version#v}"
binary="$dir/ipfs"
again=$(cd "$(dirname "$0")" && pwd)/again.sh

if [ ! -x "$binary" ]; then
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # `go install …@version` refuses, because Kubo's go.mod has exclude lines: a module of our own does not.
  (
    cd "$work"
    go mod init kubo-build
    "$again" go get "github.com/ipfs/kubo/cmd/ipfs@$version"
    "$again" go build -o ipfs github.com/ipfs/kubo/cmd/ipfs
  ) >&2
  # Whole or not at all, also when two builds run side by side.
  mv "$work/ipfs" "$binary"
fi
echo "$binary"
