#!/bin/sh
# From the official image: as root, it gives its folder to `redis` and continues as that user; protected mode is off.
set -eu

if [ "$(id -u)" = 0 ]; then
  find . \! -user redis -exec chown redis {} +
  exec setpriv --reuid=redis --regid=redis --clear-groups -- "$0" "$@"
fi
if [ "$1" = redis-server ]; then
  shift
  set -- redis-server --protected-mode no "$@"
fi
exec "$@"
