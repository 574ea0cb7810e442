#!/bin/sh
# Installs Redis, PostgreSQL and curl from the distribution, as root, if they are missing. Tests and benchmarks
# start their own servers from them.
set -eu

if ! { command -v redis-server && command -v curl && ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends redis-server postgresql curl
fi
