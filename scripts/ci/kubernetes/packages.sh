#!/bin/sh
# Installs the Debian packages that a cluster needs, as root. Installed packages from any source stay unchanged.
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
