#!/bin/sh
# Caddy: BERTH_TEST_CADDY=$(scripts/ci/caddy.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" github.com/caddyserver/caddy/v2/cmd/caddy v2.11.9
