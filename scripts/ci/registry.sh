#!/bin/sh
# distribution, the reference registry: BERTH_TEST_REGISTRY=$(scripts/ci/registry.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" github.com/distribution/distribution/v3/cmd/registry v3.0.0
