#!/bin/sh
# Builds Caddy with Go, once, into a cache outside of the checkout, and prints the path of the binary
# as the last line: BERTH_TEST_CADDY=$(scripts/ci/caddy.sh | tail -n 1)
set -eu

version=v2.11.9
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/caddy-${version#v}"
binary="$dir/caddy"

if [ ! -x "$binary" ]; then
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  GOBIN="$work" go install "github.com/caddyserver/caddy/v2/cmd/caddy@$version" >&2
  # Whole or not at all, also when two builds run side by side.
  mv "$work/caddy" "$binary"
fi
echo "$binary"
