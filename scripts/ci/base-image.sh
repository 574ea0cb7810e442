#!/bin/sh
# Makes the base image of engine images where no image registry is in reach: Debian bookworm from its packages,
# Node from node_modules, and this machine's npm. Once: the tar lies in a cache outside of the checkout. Prints the image's name as
# the last line: BERTH_BASE_IMAGE=$(scripts/ci/base-image.sh | tail -n 1). With `tar` as argument it needs no Docker, and prints the
# path of the tar.
set -eu
cd "$(dirname "$0")/../.."

node=$(readlink -f node_modules/.bin/node)
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
# What is in the image; another list or another Node makes another one.
packages=git,ca-certificates,tini,curl
stamp=$("$node" --version)-npm$(npm --version)-$(echo "$packages" | cksum | cut -d ' ' -f 1)
image=berth-base:bookworm
cache="${XDG_CACHE_HOME:-$HOME/.cache}/berth"
tar="$cache/base-bookworm-$stamp.tar"

if [ ! -f "$tar" ]; then
  mkdir -p "$cache"
  if ! command -v debootstrap >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >&2
  fi
  work=$(mktemp -d "$cache/base.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  root=$work/root
  debootstrap --variant=minbase "--include=$packages" bookworm "$root" "$(scripts/ci/apt-mirror.sh bookworm)" >&2
  rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* \
    "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/var/log/*.log
  # As in the official Node images: node and npm, and the user `node` with id 1000.
  install -m 755 "$node" "$root/usr/local/bin/node"
  mkdir -p "$root/usr/local/lib/node_modules"
  cp -r "$npm" "$root/usr/local/lib/node_modules/npm"
  for name in npm npx; do
    ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$root/usr/local/bin/$name"
  done
  chroot "$root" groupadd --gid 1000 node
  chroot "$root" useradd --uid 1000 --gid node --shell /bin/bash --create-home node
  tar --numeric-owner -C "$root" -cf "$work/base.tar" .
  # Whole or not at all, also when two of these run side by side.
  mv "$work/base.tar" "$tar"
fi

if [ "${1:-}" = tar ]; then
  echo "$tar"
  exit
fi
if [ "$(docker image inspect -f '{{ index .Config.Labels "berth.base" }}' "$image" 2>/dev/null)" != "$stamp" ]; then
  docker import --change "LABEL berth.base=$stamp" --change 'CMD ["node"]' "$tar" "$image" >&2
fi
echo "$image"
