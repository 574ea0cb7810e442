#!/usr/bin/env bash
# Runs the stack of docker-compose.yml like an operator: from a clean clone, on a separate Docker engine, with stand-ins
# for the official images: compose.sh COMMAND…, which finds the clone in BERTH_TEST_CLONE. `compose.sh images` only builds
# the images.
set -euo pipefail
cd "$(dirname "$0")/../.."

own=$PWD/scripts/ci/own-docker.sh
# The image with the agents' disks uses a loop device of the machine.
tidy() {
  "$own" stop || true
  if [ -z "${clone:-}" ]; then return; fi
  losetup --noheadings --output NAME --associated "$clone/disks/disks.img" 2>/dev/null | xargs -r losetup --detach || true
  rm -rf "$clone"
}
trap tidy EXIT
"$own" start
"$own" run scripts/ci/stand-in-images.sh
if [ "${1:-}" = images ]; then exit; fi
# Leftovers of a killed run.
"$own" run sh -c 'docker ps --all --quiet | xargs -r docker rm --force; docker volume ls --quiet | xargs -r docker volume rm
  docker network prune --force; docker images --quiet berth | xargs -r docker rmi --force' >/dev/null

# Settings for other tests must not reach the stack.
unset "${!BERTH_@}" PORT PUBLIC_URL
clone=$(mktemp -d)
git clone --quiet --no-hardlinks . "$clone"
# Behind a proxy with its own certificate authority, build images like an operator there.
if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then echo "NPM_CA=$NODE_EXTRA_CA_CERTS" >>"$clone/.env"; fi
BERTH_TEST_CLONE=$clone "$own" run "$@"
