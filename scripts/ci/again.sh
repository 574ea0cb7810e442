#!/bin/sh
# again.sh COMMAND…: runs it up to three times, because Go does not retry a download that broke off.
set -u

for pause in 5 20; do
  "$@" && exit
  echo "again in $pause s: $*" >&2
  sleep "$pause"
done
exec "$@"
