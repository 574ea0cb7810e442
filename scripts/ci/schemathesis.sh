#!/bin/sh
# Installs schemathesis from PyPI, once, into a cache outside the checkout, and prints the path of the program as the
# last line.
set -eu

version=4.32.5
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/schemathesis-$version"
program="$dir/bin/schemathesis"
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
  "$dir/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" >&2
fi
echo "$program"
