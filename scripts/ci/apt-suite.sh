#!/bin/sh
# Runs apt-get on one suite of Debian only, without a change of this machine's sources, in the current folder:
# apt-suite.sh <suite> download|source <arguments>
set -eu

suite=$1
shift
mirror=$("$(dirname "$0")/apt-mirror.sh" "$suite")
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
# apt reads as its own user.
chmod 755 "$state"
mkdir -p "$state/lists/partial" "$state/archives/partial"
for type in deb deb-src; do
  echo "$type [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$state/sources.list"
apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state" -o APT::Sandbox::User=root "$@"
}
apt update
apt "$@"
