#!/bin/sh
# Unpacks Valkey from Debian bookworm's backports once, into a cache outside the checkout, and prints the path of the
# server as the last line: BERTH_TEST_VALKEY=$(scripts/ci/valkey.sh | tail -n 1)
set -eu

scripts=$(cd "$(dirname "$0")" && pwd)
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/valkey-8.0"
program="$dir/usr/bin/valkey-server"

if ! "$program" --version >/dev/null 2>&1; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  {
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends libatomic1 libjemalloc2 liblzf1
    (cd "$work" && "$scripts/apt-suite.sh" bookworm-backports download valkey-server valkey-tools)
    mkdir -p "$dir"
    for package in "$work"/*.deb; do dpkg --extract "$package" "$dir"; done
  } >&2
fi
echo "$program"
