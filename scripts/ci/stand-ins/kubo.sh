#!/bin/sh
# From the official entrypoint: as root, it gives the repository to user 1000 and continues as that user. At the first
# start it creates the repository with IPFS_PROFILE, with the RPC API on all addresses of the container.
set -eu

if [ "$(id -u)" = 0 ]; then
  chown ipfs "$IPFS_PATH"
  exec setpriv --reuid=ipfs --regid=users --clear-groups -- "$0" "$@"
fi
export HOME="$IPFS_PATH"
if [ ! -e "$IPFS_PATH/config" ]; then
  ipfs init ${IPFS_PROFILE:+--profile="$IPFS_PROFILE"}
  ipfs config Addresses.API /ip4/0.0.0.0/tcp/5001
  ipfs config Addresses.Gateway /ip4/0.0.0.0/tcp/8080
fi
exec ipfs "$@"
