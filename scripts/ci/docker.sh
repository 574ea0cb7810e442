#!/bin/sh
# Makes sure that a Docker engine answers, as root: installs and starts one where none does. Prints its socket
# as the last line: DOCKER_HOST=$(scripts/ci/docker.sh | tail -n 1)
set -eu

socket=/var/run/docker.sock
answers() { [ -S "$socket" ] && curl -fs --max-time 5 --unix-socket "$socket" http://docker/_ping >/dev/null; }

if ! answers; then
  if ! command -v dockerd >/dev/null || ! command -v curl >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends docker.io iptables curl; } >&2
  fi
fi
if ! answers; then
  # It outlives this script, as a service would; what it says is for whoever looks why it does not start.
  setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
  for _ in $(seq 150); do
    answers && break
    sleep 0.2
  done
  answers || { tail -n 20 /var/log/dockerd.log >&2; exit 1; }
fi
echo "unix://$socket"
