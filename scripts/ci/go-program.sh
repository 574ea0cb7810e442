#!/bin/sh
# Builds a Go program once, into a cache outside the checkout, and prints the path of the binary as the last line:
# go-program.sh <package> <version>
set -eu
. "$(dirname "$0")/go.sh"

package=$1 version=$2
name=${package##*/}
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/$name-${version#v}"
binary="$dir/$name"
again=$(cd "$(dirname "$0")" && pwd)/again.sh

if [ ! -x "$binary" ]; then
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # In a module of its own, because `go install …@version` rejects a go.mod with exclude lines, such as Kubo's.
  (
    cd "$work"
    go mod init build
    "$again" go get "$package@$version"
    "$again" go build -ldflags '-s -w' -o "$name" "$package"
  ) >&2
  # The rename makes the binary appear whole, even if two builds run at once.
  mv "$work/$name" "$binary"
fi
echo "$binary"
