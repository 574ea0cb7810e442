#!/bin/sh
# Stops a cluster, started or not: processes, mounts and addresses disappear with the first process of its node.
set -eu
. "$(dirname "$0")/settings.sh"

# The pid of a process that ended may belong to another one.
if [ -e "$run/init" ] && init=$(cat "$run/init") && grep -qs kubernetes/node.sh "/proc/$init/cmdline"; then
  kill -KILL "$init"
fi
tries=0
while ip link show "$name" >/dev/null 2>&1 && [ $tries -lt 100 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
ip link del "$name" 2>/dev/null || true
# A cgroup can be removed once its last process has exited.
tries=0
while find /sys/fs/cgroup -maxdepth 2 -name "$name" | grep -q . && [ $tries -lt 100 ]; do
  find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null || true
  tries=$((tries + 1))
  sleep 0.1
done
rm -rf "$run"
