#!/bin/sh
# Runs a command with a new cluster, number BERTH_TEST_CLUSTER, and stops the cluster after it: with.sh COMMAND…
set -eu
. "$(dirname "$0")/settings.sh"

trap '"$here/stop.sh"' EXIT
BERTH_TEST_KUBERNETES=$("$here/start.sh" | tail -n 1)
export BERTH_TEST_KUBERNETES
"$@"
