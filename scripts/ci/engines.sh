#!/bin/sh
# Installs the engine versions of the tests, once, into a cache outside the checkout, and prints its folder
# as the last line: BERTH_ENGINES_DIR=$(scripts/ci/engines.sh | tail -n 1)
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"

node --input-type=module -e "
  import { ENGINE_VERSION, OLDER_ENGINE_VERSION, ensureEngines } from '$PWD/test/support/engines.ts'
  console.log(await ensureEngines([ENGINE_VERSION, OLDER_ENGINE_VERSION]))
"
