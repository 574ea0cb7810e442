#!/bin/sh
# Puts images on the running node, from archives as `docker save` or image.sh write them: load.sh <archive>…
set -eu
. "$(dirname "$0")/settings.sh"
for archive; do
  nsenter -t "$(cat "$run/init")" -m -p -n ctr --namespace k8s.io images import "$archive" >&2
done
