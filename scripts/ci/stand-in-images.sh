#!/usr/bin/env bash
# Makes images under the official names that docker-compose.yml asks for, where no image registry is in reach: from
# Debian's packages, Node in node_modules, and Kubo and Caddy built with Go. Each does what the compose file relies on,
# and no more. Makes only what the engine of DOCKER_HOST has not got; downloads lie in a cache outside of the checkout.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
label=berth.stand-in
mirror=$(scripts/ci/apt-mirror.sh bookworm)
node=$(readlink -f node_modules/.bin/node)
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
kubo=$(scripts/ci/kubo.sh | tail -n 1)
caddy=$(scripts/ci/caddy.sh | tail -n 1)

# A change of the recipes, of Node, npm, Kubo or Caddy makes new images.
stamp=$(cat "$0" scripts/ci/stand-ins/* <("$node" --version) <(npm --version) <(echo "$kubo" "$caddy") | sha256sum | cut -c 1-16)

has() { [ "$(docker image inspect -f "{{ index .Config.Labels \"$label\" }}" "$1" 2>/dev/null)" = "$stamp" ]; }

debian() {
  if has debian:bookworm-slim; then return; fi
  local tar=$cache/debian-bookworm.tar work
  if [ ! -f "$tar" ]; then
    work=$(mktemp -d "$cache/debian.XXXXXX")
    if ! command -v debootstrap >/dev/null; then
      apt-get update -qq >&2
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >&2
    fi
    debootstrap --variant=minbase bookworm "$work/root" "$mirror" >&2
    rm -rf "$work/root"/var/cache/apt/*.bin "$work/root"/var/cache/apt/archives/*.deb \
      "$work/root"/var/lib/apt/lists/* "$work/root"/usr/share/{doc,man,locale}/*
    tar --numeric-owner -C "$work/root" -cf "$work/debian.tar" .
    # Whole or not at all.
    mv "$work/debian.tar" "$tar"
    rm -rf "$work"
  fi
  docker import --change "LABEL $label=$stamp" "$tar" debian:bookworm-slim >&2
}

# build NAME TARGET [OPTION…]
build() {
  if has "$1"; then return; fi
  docker build --quiet --label "$label=$stamp" --tag "$1" --target "$2" "${@:3}" scripts/ci/stand-ins >&2
}

debian
build node:24-bookworm-slim node --build-context "node-files=$(dirname "$(dirname "$node")")" --build-context "npm-files=$npm"
build ipfs/kubo:v0.43.0 kubo --build-context "kubo-files=$(dirname "$kubo")"
build caddy:2 caddy --build-context "caddy-files=$(dirname "$caddy")"
build redis:7-bookworm redis
build postgres:18-bookworm postgres --build-arg "MIRROR=$mirror"
docker image prune --force >&2
