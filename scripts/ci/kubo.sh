#!/bin/sh
# Kubo: BERTH_TEST_KUBO=$(scripts/ci/kubo.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" github.com/ipfs/kubo/cmd/ipfs v0.43.0
