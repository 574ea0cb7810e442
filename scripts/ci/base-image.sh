#!/bin/sh
# Builds the base image of engine images on machines that reach no image registry: Debian of debian.sh with a few
# packages, Node from node_modules, and this machine's npm. The tar is built once, in a cache outside the checkout.
# Prints the image's name as the last line: BERTH_BASE_IMAGE=$(scripts/ci/base-image.sh | tail -n 1). With `tar` as
# argument it needs no Docker, and prints the path of the tar.
set -eu
cd "$(dirname "$0")/../.."

node=$(readlink -f node_modules/.bin/node)
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
# A change of the recipes, of Node or of npm gives another image.
stamp=$("$node" --version)-npm$(npm --version)-$(cat scripts/ci/debian.sh scripts/ci/base-image.sh | cksum | cut -d ' ' -f 1)
image=berth-base:bookworm
cache="${XDG_CACHE_HOME:-$HOME/.cache}/berth"
tar="$cache/base-bookworm-$stamp.tar"

if [ ! -f "$tar" ]; then
  debian=$(scripts/ci/debian.sh)
  work=$(mktemp -d "$cache/base.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  root=$work/root
  mkdir "$root"
  tar --numeric-owner -C "$root" -xf "$debian"
  chroot "$root" sh -ec 'apt-get update -qq
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends ca-certificates curl git tini' >&2
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
  # The rename makes the tar appear whole, even if two of these run at once.
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
