#!/bin/sh
# Builds PgBouncer from the source of Debian trixie once, into a cache outside the checkout, and prints its path as the
# last line: bookworm's is too old for prepared statements. BERTH_TEST_PGBOUNCER=$(scripts/ci/pgbouncer.sh | tail -n 1)
set -eu

version=1.24.1
scripts=$(cd "$(dirname "$0")" && pwd)
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/pgbouncer-$version"
# Readable for the user as whom it runs, unlike a home.
program="/usr/local/lib/berth-pgbouncer-$version"

if [ ! -x "$program" ]; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev libevent-dev make pkg-config; } >&2
  mkdir -p "$dir"
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (
    cd "$work"
    "$scripts/apt-suite.sh" trixie source --download-only pgbouncer
    tar --extract --gzip --strip-components=1 --file "pgbouncer_$version.orig.tar.gz"
    ./configure --quiet --without-cares --without-openssl
    make pgbouncer
  ) >&2
  install -m 755 "$work/pgbouncer" "$program.new"
  mv "$program.new" "$program"
fi
echo "$program"
