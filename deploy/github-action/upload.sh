#!/usr/bin/env bash
# Uploads INPUT_PATH with the bundled command line, and writes the outputs and a summary of the job.
set -euo pipefail

berth=${GITHUB_ACTION_PATH:-$(dirname "$0")}/../../clients/cli/dist/berth.mjs
args=(files add --json)
case ${INPUT_NETWORK:-public} in
  public) args+=(--public) ;;
  private) ;;
  *) echo "::error::network must be public or private, not $INPUT_NETWORK" >&2; exit 2 ;;
esac
[ -z "${INPUT_NAME:-}" ] || args+=("--name=$INPUT_NAME")
[ -z "${INPUT_GROUP:-}" ] || args+=("--group=$INPUT_GROUP")
[ "${INPUT_HIDDEN:-false}" != true ] || args+=(--hidden)

added=$(node "$berth" "${args[@]}" -- "$INPUT_PATH")

# Values of one line each: a name with a line break cannot add another output.
node --input-type=module - "$added" <<'END'
import { appendFileSync } from 'node:fs'
const [file] = JSON.parse(process.argv[2])
const { GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary, INPUT_NETWORK: network } = process.env
if (output) appendFileSync(output, `cid=${file.cid}\nid=${file.id}\nurl=${file.url ?? ''}\n`)
// A link to a private file lets anyone read it, so it is in no log.
const shown = network !== 'private' && file.url ? `[${file.cid}](${file.url})` : `\`${file.cid}\``
if (summary) appendFileSync(summary, `Uploaded to Berth: ${shown}\n`)
console.log(`uploaded ${file.cid}`)
END
