#!/bin/sh
# Makes sure that a Docker engine answers that can run the Compose file: version 23 or newer, with Compose 2 and
# buildx. If there is none, installs and starts one, as root. Prints its socket as the last line:
# DOCKER_HOST=$(scripts/ci/docker.sh | tail -n 1)
set -eu
cd "$(dirname "$0")/../.."

socket=/var/run/docker.sock
answers() { [ -S "$socket" ] && curl -fs --max-time 5 --unix-socket "$socket" http://docker/_ping >/dev/null; }
# 23 or newer; an empty version is older.
new_enough() { dpkg --compare-versions "$1" ge 23; }
version_of() { sed -nE 's/.*version ([0-9.]+).*/\1/p'; }

engine_version() {
  if answers; then docker -H "unix://$socket" version --format '{{.Server.Version}}'; else dockerd --version | version_of; fi
}

complete() {
  command -v curl && command -v iptables && docker compose version && docker buildx version \
    && new_enough "$(docker --version | version_of)" && new_enough "$(engine_version)"
} >/dev/null 2>&1

# With `trixie` as argument, packages of that suite can be installed too, but only by name: everything else on the
# machine stays with its own suite. The machine's sources stay unchanged.
install_packages() {
  suite=${1:-}
  source=/etc/apt/sources.list.d/berth-ci.sources
  pin=/etc/apt/preferences.d/berth-ci
  if [ "$suite" ]; then
    trap 'rm -f "$source" "$pin"' EXIT
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 50\n' "$suite" >"$pin"
    if ! apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages' | grep -qx "$suite"; then
      mirror=$(scripts/ci/apt-mirror.sh "$suite")
      printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
        "$mirror" "$suite" /usr/share/keyrings/debian-archive-keyring.gpg >"$source"
    fi
    apt-get update -qq
    suite=/$suite
  fi
  apt-get install -y -qq --no-install-recommends ca-certificates curl iptables \
    "docker.io$suite" "docker-cli$suite" "docker-compose$suite" "docker-buildx$suite"
  rm -f "$source" "$pin"
}

if ! complete; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # Debian bookworm has Docker 20.10 and Compose 1.29.
  if new_enough "$(apt-cache policy docker.io | awk '$1 == "Candidate:" {print $2}')"; then
    install_packages >&2
  else
    install_packages trixie >&2
  fi
  complete || { echo 'Docker 23 or newer, Compose 2 and buildx are needed, and are not all here' >&2; exit 1; }
fi
if ! answers; then
  scripts/ci/cgroup.sh docker
  # It outlives this script, like a service; its output helps to find out why it does not start.
  setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
  for _ in $(seq 150); do
    answers && break
    sleep 0.2
  done
  answers || { tail -n 20 /var/log/dockerd.log >&2; exit 1; }
fi
echo "unix://$socket"
