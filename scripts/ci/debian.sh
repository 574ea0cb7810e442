#!/bin/sh
# Builds Debian bookworm from its packages on machines that reach no image registry, with no more in it than the official
# image debian:bookworm-slim has. The tar is built once, in a cache outside the checkout. Prints its path.
set -eu
cd "$(dirname "$0")/../.."

cache="${XDG_CACHE_HOME:-$HOME/.cache}/berth"
# A change of this recipe gives another tar.
tar="$cache/debian-bookworm-$(cksum <scripts/ci/debian.sh | cut -d ' ' -f 1).tar"

if [ ! -f "$tar" ]; then
  mkdir -p "$cache"
  if ! command -v debootstrap >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >&2
  fi
  work=$(mktemp -d "$cache/debian.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  root=$work/root
  debootstrap --variant=minbase bookworm "$root" "$(scripts/ci/apt-mirror.sh bookworm)" >&2
  rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* \
    "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/*
  tar --numeric-owner -C "$root" -cf "$work/debian.tar" .
  # The rename makes the tar appear whole, even if two of these run at once.
  mv "$work/debian.tar" "$tar"
fi
echo "$tar"
