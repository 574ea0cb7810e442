#!/bin/sh
# Builds a program with Go, once, into a cache outside of the checkout, and prints the path of the binary as the last line:
# go-program.sh <package> <version>
set -eu

package=$1 version=$2
name=${package##*/}
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/$name-${version#v}"
binary="$dir/$name"

if [ ! -x "$binary" ]; then
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  GOBIN="$work" "$(dirname "$0")/again.sh" go install "$package@$version" >&2
  # Whole or not at all, also when two builds run side by side.
  mv "$work/$name" "$binary"
fi
echo "$binary"
