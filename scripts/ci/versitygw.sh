#!/bin/sh
# Builds versitygw, an S3 server on a folder, with Go, once, into a cache outside of the checkout, and prints the path of
# the binary as the last line: BERTH_TEST_S3=$(scripts/ci/versitygw.sh | tail -n 1)
set -eu

version=v1.8.0
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/versitygw-${version#v}"
binary="$dir/versitygw"

if [ ! -x "$binary" ]; then
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  GOBIN="$work" go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
  # Whole or not at all, also when two builds run side by side.
  mv "$work/versitygw" "$binary"
fi
echo "$binary"
