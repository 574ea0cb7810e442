#!/usr/bin/env bash
# Runs a command like on a bare Debian, in a fresh clone of HEAD. The home is empty, and the PATH has Node, npm, git and
# the programs of Debian's required packages. As root it also hides servers that programs would find by an absolute path.
# FOLDER keeps home and clone for the next command: bare.sh FOLDER USER COMMAND…
set -euo pipefail
folder=$1/$2 user=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)

make() {
  mkdir -p "$folder/bin" "$folder/home"
  chmod 755 "${folder%/*}" "$folder"
  chmod 700 "$folder/home"
  local packages file program
  packages=$(dpkg-query -W -f '${Package} ${Essential} ${Priority}\n' | awk '$2 == "yes" || $3 == "required" {print $1}')
  # shellcheck disable=SC2086 # Each word is a package.
  dpkg -L $packages | grep -E '^(/usr)?/s?bin/[^/]+$' | while read -r file; do
    if [ -x "$file" ]; then ln -sf "$file" "$folder/bin/"; fi
  done
  # Alternatives, such as awk, belong to no package.
  for program in awk node npm npx git; do ln -sf "$(command -v $program)" "$folder/bin/"; done
  git clone --quiet --no-hardlinks "$root" "$folder/home/berth"
  if [ "$user" != "$(id -un)" ]; then chown -R "$user" "$folder/home"; fi
}

hide() {
  local path
  for path in /run/docker.sock /run/containerd/containerd.sock; do
    if [ -e $path ]; then mount --bind /dev/null $path; fi
  done
  for path in /usr/lib/postgresql /usr/local/go; do
    if [ -e $path ]; then mount -t tmpfs tmpfs $path; fi
  done
}

if [ "${1:-}" != --hidden ]; then
  [ -d "$folder" ] || make
  if [ "$(id -u)" = 0 ]; then exec unshare --mount "$0" "${folder%/*}" "$user" --hidden "$@"; fi
else
  shift
  hide
fi
cd "$folder/home/berth"
as=()
if [ "$user" != "$(id -un)" ]; then as=(runuser -u "$user" --); fi
unset npm_config_cache XDG_CACHE_HOME NODE_COMPILE_CACHE DOCKER_HOST "${!BERTH_@}"
exec "${as[@]}" env HOME="$folder/home" USER="$user" PATH="$folder/bin" "$@"
