#!/usr/bin/env bash
# Checks the alert rules and the example Prometheus configuration, and triggers each alert once. Installs promtool if it
# is missing; no Prometheus server is started.
set -euo pipefail
cd "$(dirname "$0")/../../deploy/prometheus"

if ! command -v promtool >/dev/null; then
  # Debian starts what it installs, unless a policy says otherwise.
  policy=/usr/sbin/policy-rc.d
  if ! [ -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    trap 'rm -f $policy' EXIT
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends prometheus >&2
fi

promtool check config prometheus.yml
promtool check rules alerts.yml
promtool test rules alerts.test.yml
# A rule without a test would go unnoticed.
untested=$(comm -23 <(sed -n 's/.*- alert: //p' alerts.yml | sort) <(sed -n 's/.*alertname: //p' alerts.test.yml | sort -u))
if [ -n "$untested" ]; then
  echo "alerts without a test: $untested" >&2
  exit 1
fi
