#!/bin/sh
# Installs LiteLLM's proxy from PyPI, once, into a cache outside the checkout, and prints the path of the program as the
# last line.
set -eu

version=1.106.12
dir="${XDG_CACHE_HOME:-$HOME/.cache}/berth/litellm-$version"
program="$dir/bin/litellm"
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
  "$dir/bin/pip" install --quiet --disable-pip-version-check "litellm[proxy]==$version" >&2
fi
echo "$program"
