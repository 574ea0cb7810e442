#!/usr/bin/env bash
# Builds images under the official names in docker-compose.yml, on machines that reach no image registry: from Debian's
# packages, Node in node_modules, and Kubo and Caddy built with Go. Each does only what the Compose file relies on. Builds
# only images that the engine of DOCKER_HOST lacks; downloads are in a cache outside the checkout.
set -euo pipefail
cd "$(dirname "$0")/../.."

label=berth.stand-in
mirror=$(scripts/ci/apt-mirror.sh bookworm)
debian=$(scripts/ci/debian.sh)
node=$(readlink -f node_modules/.bin/node)
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
kubo=$(scripts/ci/kubo.sh | tail -n 1)
caddy=$(scripts/ci/caddy.sh | tail -n 1)

# A change of the recipes, of Debian, Node, npm, Kubo or Caddy gives new images.
stamp=$(cat "$0" scripts/ci/stand-ins/* <("$node" --version) <(npm --version) <(echo "$debian" "$kubo" "$caddy") | sha256sum | cut -c 1-16)

has() { [ "$(docker image inspect -f "{{ index .Config.Labels \"$label\" }}" "$1" 2>/dev/null)" = "$stamp" ]; }

# build NAME TARGET [OPTION…]
build() {
  if has "$1"; then return; fi
  docker build --quiet --label "$label=$stamp" --tag "$1" --target "$2" "${@:3}" scripts/ci/stand-ins >&2
}

has debian:bookworm-slim || docker import --change "LABEL $label=$stamp" "$debian" debian:bookworm-slim >&2
build node:24-bookworm-slim node --build-context "node-files=$(dirname "$(dirname "$node")")" --build-context "npm-files=$npm"
build ipfs/kubo:v0.43.0 kubo --build-context "kubo-files=$(dirname "$kubo")"
build caddy:2 caddy --build-context "caddy-files=$(dirname "$caddy")"
build redis:7-bookworm redis
build postgres:18-bookworm postgres --build-arg "MIRROR=$mirror"
docker image prune --force >&2
