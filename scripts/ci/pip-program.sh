#!/bin/sh
# Installs a program from PyPI once, into a cache outside the checkout, and prints its path as the last line:
# pip-program.sh <name> <version> [<extra>]
set -eu

name=$1 version=$2 extra=${3:+[$3]}
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/$name-$version"
program="$dir/bin/$name"
# The system's own Python, because others may come and go.
python=/usr/bin/python3

if ! "$program" --version >/dev/null 2>&1; then
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv; } >&2
  fi
  rm -rf "$dir"
  mkdir -p "$(dirname "$dir")"
  "$python" -m venv "$dir" >&2
  "$dir/bin/pip" install --quiet --disable-pip-version-check "$name$extra==$version" >&2
fi
echo "$program"
