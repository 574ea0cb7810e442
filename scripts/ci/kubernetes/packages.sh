#!/bin/sh
# Installs what a cluster needs of Debian, as root. A package that is there, from wherever, stays as it is.
set -eu

missing=
for package in busybox-static conntrack containerd containernetworking-plugins gcc ipset iptables libc6-dev openssl procps runc; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -z "$missing" ]; then exit; fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Each word is a package.
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing
