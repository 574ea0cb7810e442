/**
 * Finds regular expressions that take more than linear time on some text, because callers choose most of the texts that
 * Berth matches. It reads each literal in the product's code, and fails if recheck finds an attack. npx provides the
 * packages. The cache folder keeps safe expressions, so that a run checks only the others.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Time for one expression; recheck gives no verdict on one that takes longer. */
const TIMEOUT_MS = 2000

interface Literal {
  regex?: { pattern: string; flags: string }
  loc: { start: { line: number } }
}
interface Verdict {
  status: 'safe' | 'vulnerable' | 'unknown'
  complexity?: { summary: string }
}
interface Packages {
  'recheck/package.json': { version: string }
  recheck: { checkSync(source: string, flags: string, options: { timeout: number }): Verdict }
  acorn: { parse(code: string, options: object): object }
  'acorn-walk': { full(tree: object, visit: (node: Literal) => void): void }
}

// npx puts its program folder first in the PATH.
const require = createRequire(join(dirname(process.env.PATH?.split(':')[0] ?? ''), 'from-here.js'))
const load = <Name extends keyof Packages>(name: Name): Packages[Name] => require(name)
const { checkSync } = load('recheck')
const { parse } = load('acorn')
const { full } = load('acorn-walk')

const SAFE: Verdict = { status: 'safe' }

/** Where each expression occurs. */
const places = new Map<string, string[]>()
for (const file of globSync('{src,workers,agentd,clients}/**/*.ts')) {
  if (/\.test\.ts$|\/generated\//.test(file)) continue
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'))
  full(parse(code, { ecmaVersion: 'latest', sourceType: 'module', locations: true }), ({ regex, loc }) => {
    if (!regex) return
    const key = JSON.stringify([regex.pattern, regex.flags])
    places.set(key, [...(places.get(key) ?? []), `${file}:${loc.start.line}`])
  })
}

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth')
const kept = join(cache, `regexes-${load('recheck/package.json').version}.json`)
const known = new Set<string>(readKept())
const safe: string[] = []
let found = 0
for (const [key, at] of places) {
  const [pattern, flags] = JSON.parse(key)
  const verdict = known.has(key) ? SAFE : checkSync(pattern, flags, { timeout: TIMEOUT_MS })
  if (verdict.status === 'safe') safe.push(key)
  if (verdict.status !== 'vulnerable') continue
  found++
  console.error(`${at.join(', ')}: /${pattern}/${flags} takes time of ${verdict.complexity?.summary}`)
}
mkdirSync(cache, { recursive: true })
writeFileSync(kept, JSON.stringify(safe))
console.log(`${places.size} regular expressions, ${found} of more than linear time`)
process.exitCode = found === 0 ? 0 : 1

/** The expressions that this version of recheck found safe in the last run on this machine. */
function readKept(): string[] {
  try {
    return JSON.parse(readFileSync(kept, 'utf8'))
  } catch {
    return []
  }
}
