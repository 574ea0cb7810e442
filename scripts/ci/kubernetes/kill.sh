#!/bin/sh
# Kills programs of the running node, which restarts each of them like a service manager: kill.sh <program>…
# SIGNAL=STOP pauses them instead, until SIGNAL=CONT.
set -eu
. "$(dirname "$0")/settings.sh"
for program; do
  # The kernel keeps 15 characters of a name.
  nsenter -t "$(cat "$run/init")" -m -p pkill "-${SIGNAL:-KILL}" -x "$(printf %.15s "$program")"
done
