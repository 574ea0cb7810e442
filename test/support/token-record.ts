/**
 * The tokens and secrets that the tests of a run create, in a file that all their processes append to. At the end of
 * the run, the log of the Berth that they share is searched for each of them.
 */
import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** The variable that names the file; nothing is recorded if it is unset. */
export const TOKEN_RECORD = 'BERTH_TEST_TOKENS'

/** Body fields that hold a token or secret; a page token is not secret. `value` is a secret only below `/secrets`. */
const FIELDS = /^(jwt|privateKey|.*(?<!page_?)token|.*signature|pinata_api_secret)$/i
/** Shorter values would also match other words. */
const SHORTEST = 12

const recorded = new Set<string>()

/** Records a key, and the tokens in the bodies of a request and its response. */
export function recordTokens(path: string, ...held: unknown[]): void {
  const file = process.env[TOKEN_RECORD]
  if (!file) return
  const found: string[] = []
  const walk = (value: unknown, field: string): void => {
    if (typeof value === 'object' && value !== null)
      for (const [name, part] of Object.entries(value)) walk(part, name)
    else if (typeof value !== 'string') return
    else if (URL.canParse(value)) found.push(new URL(value).searchParams.get('X-Signature') ?? '')
    else if (field === '' || FIELDS.test(field)) found.push(value)
    else if (field === 'value' && path.includes('/secrets')) found.push(value)
  }
  for (const value of held) walk(value, '')
  const fresh = found.filter((token) => token.length >= SHORTEST && !recorded.has(token))
  if (fresh.length === 0) return
  for (const token of fresh) recorded.add(token)
  appendFileSync(file, fresh.map((token) => `${JSON.stringify(token)}\n`).join(''))
}

/**
 * Searches the logs of processes, lines of JSON, for every recorded token.
 * @returns how many tokens there are, and the lines that contain one.
 */
export async function findLogged(file: string, output: string): Promise<{ tokens: number; lines: string[] }> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const tokens = new Set(
    text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as string),
  )
  // Lines that `npm start` prints for a person are not log lines.
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return {
    tokens: tokens.size,
    lines: lines.filter((line) => [...tokens].some((token) => line.includes(token))),
  }
}
