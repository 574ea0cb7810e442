#!/bin/sh
# Runs a command with a cluster of its own, number BERTH_TEST_CLUSTER, which ends with the command: with.sh COMMAND…
set -eu
. "$(dirname "$0")/settings.sh"

trap '"$here/stop.sh"' EXIT
BERTH_TEST_KUBERNETES=$("$here/start.sh" | tail -n 1)
export BERTH_TEST_KUBERNETES
"$@"
