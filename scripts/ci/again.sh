#!/bin/sh
# again.sh COMMAND…: runs it up to three times, since Go does not try a download again that broke off.
set -u

for pause in 5 20; do
  "$@" && exit
  echo "again in $pause s: $*" >&2
  sleep "$pause"
done
exec "$@"
