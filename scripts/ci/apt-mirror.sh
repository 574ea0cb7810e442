#!/bin/sh
# Prints the mirror for the packages of a Debian suite (bookworm, trixie, sid): the one that this machine uses itself.
# DEBIAN_MIRROR is for a machine that does not run Debian: mirror=$(scripts/ci/apt-mirror.sh trixie)
set -eu

suite=${1:?which suite}
# One line per source: URI, codename and label; the archive of security updates has another label and few packages.
sources() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' 'Created-By: Packages' 'Origin: Debian' | grep ' Debian$'
}

if [ -z "${DEBIAN_MIRROR:-}" ]; then
  # A machine that has not read its sources yet lists none.
  sources >/dev/null || apt-get update -qq >&2
  # The source of the suite itself, or the first one: every mirror has all suites.
  DEBIAN_MIRROR=$(sources | awk -v suite="$suite" '$2 == suite {print $1; found = 1; exit}
    NR == 1 {first = $1} END {if (!found) print first}')
fi
if [ -z "$DEBIAN_MIRROR" ]; then
  echo 'This machine has no source of Debian packages: set DEBIAN_MIRROR' >&2
  exit 1
fi
echo "$DEBIAN_MIRROR"
