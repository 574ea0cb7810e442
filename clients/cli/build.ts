/**
 * Bundles the command line into `dist/berth.mjs`, one file that needs only Node: `npm run build:cli`. With `--check` it
 * fails if the file does not match the sources.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, 'dist/berth.mjs')
const ESBUILD = 'esbuild@0.28.2'
const OPTIONS = ['--bundle', '--platform=node', '--format=esm', '--target=node20', '--log-level=warning']

const bundle = execFileSync(
  'npx',
  [
    '--yes',
    ESBUILD,
    'src/main.ts',
    ...OPTIONS,
    '--preserve-symlinks',
    '--banner:js=#!/usr/bin/env node',
    '--legal-comments=none',
  ],
  { cwd: import.meta.dirname, encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'inherit'] },
)
if (!process.argv.includes('--check')) writeFileSync(FILE, bundle, { mode: 0o755 })
else if (readFileSync(FILE, 'utf8') !== bundle) {
  console.error('clients/cli/dist does not match the sources: run `npm run build:cli`')
  process.exitCode = 1
}
