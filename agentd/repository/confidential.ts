/**
 * Decides which files must not leave the agent with its repository, in addition to those that `.gitignore` excludes.
 */
import { join } from 'node:path'
import { readPlainFile } from '../plain-file.ts'
import type { Git } from './git.ts'
import { keyIn, SHAPE_CHARS } from './key-shapes.ts'
import { readObjects } from './objects.ts'
import type { Repository } from './repository.ts'

/** Shorter values would match ordinary words. */
const SHORTEST_VALUE = 8
/** Names in lower case. Folders count as well, as in `.gitignore`. */
const NAMES =
  /^(?:\.env(?:rc|[._-].+)?|.+\.(?:env|key|pem|ppk|p12|pfx|jks|keystore|kdbx)|secrets(?:[._-].*)?|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?|\.netrc|_netrc|\.pgpass|\.git-credentials|\.(?:ssh|gnupg|aws|kube))$/
/** Similar names without secrets: files that only name variables, and public keys. */
const OPEN_NAMES = /^(?:\.env[._-](?:example|sample|template|dist)|id_.+\.pub)$/

const BY_NAME = 'files of this name usually hold secrets'
const BY_VALUE = 'it has the value of one of the agent’s secrets'

/** Why a file stays out of commits. */
export interface Finding {
  reason: string
  /** Whether the owner may include the file anyway: not if it has the value of a secret. */
  excusable: boolean
}

/** Maximum bytes of a `.gitignore` with exceptions. */
export const GITIGNORE_BYTES = 262_144

/** The rules for a repository with its current secrets and exceptions. @param more paths that the owner includes. */
export async function confidentialOf(
  { root, secrets }: Pick<Repository, 'root' | 'secrets'>,
  more: string[] = [],
): Promise<Confidential> {
  // An unreadable file has no exceptions.
  const text = await readPlainFile(join(root, '.gitignore'), GITIGNORE_BYTES).catch(() => undefined)
  return new Confidential(secrets(), [...exceptionsIn(text ?? ''), ...more])
}

/**
 * Paths that the owner includes: lines of the root's `.gitignore` with the exact path of a file, such as
 * `!/workspace/tests/key.pem`. A name, a pattern or a folder includes nothing, because it would match files that nobody
 * thought of.
 */
export function exceptionsIn(gitignore: string): string[] {
  return gitignore.split(/\r?\n/).flatMap((line) => {
    const path = line.trimEnd().replace(/^!\/?/, '')
    const isExact = line.startsWith('!') && !/[*?[\]\\]|\/$/.test(path) && line.includes('/')
    return isExact ? [path] : []
  })
}

/** Decides which files stay out of commits: by their name, by a secret's value in them, or by the shape of a key. */
export class Confidential {
  readonly #needles: Buffer[]
  readonly #overlap: number
  readonly #excepted: Set<string>
  /** Equal for equal values and exceptions. It is secret itself. */
  readonly key: string

  /** @param values of the agent's secrets; values that are too short are ignored. @param excepted paths. */
  constructor(values: Iterable<string>, excepted: Iterable<string>) {
    const texts = new Set<string>()
    for (const value of values) {
      const text = value.trim()
      if (text.length < SHORTEST_VALUE) continue
      texts.add(text)
      // The text as written in a JSON file.
      texts.add(JSON.stringify(text).slice(1, -1))
    }
    this.#excepted = new Set(excepted)
    this.key = JSON.stringify([[...texts].sort(), [...this.#excepted].sort()])
    this.#needles = [...texts].map((text) => Buffer.from(text))
    this.#overlap = Math.max(SHAPE_CHARS, ...this.#needles.map(({ length }) => length)) - 1
  }

  /** The reason why a path in git's form stays out whatever its content; undefined if it does not. */
  byName(path: string): string | undefined {
    if (this.#hasValue(Buffer.from(path))) return 'its name has the value of one of the agent’s secrets'
    if (this.#excepted.has(path)) return undefined
    const isNamed = path.split('/').some((part) => {
      const name = part.toLowerCase()
      return NAMES.test(name) && !OPEN_NAMES.test(name)
    })
    return isNamed ? excusable(BY_NAME, path) : undefined
  }

  /** Why a path with this content stays out; undefined if it does not. @param path empty for commits and tags. */
  byContent(path: string, finding: Finding | undefined): string | undefined {
    if (!finding?.excusable || path === '') return finding?.reason
    return this.#excepted.has(path) ? undefined : excusable(finding.reason, path)
  }

  /** Searches objects. @param options as of `readObjects`. @throws GitError */
  async find(
    git: Git,
    ids: string[],
    options?: Parameters<typeof readObjects>[2],
  ): Promise<Map<string, Finding>> {
    const found = new Map<string, Finding>()
    if (ids.length === 0) return found
    for await (const { id, type, content } of readObjects(git, ids, options)) {
      let tail = Buffer.alloc(0)
      for await (const chunk of content) {
        if (type === 'tree' || found.get(id)?.excusable === false) continue
        // A value may begin in one chunk and end in the next.
        const piece = tail.length > 0 ? Buffer.concat([tail, chunk]) : chunk
        if (this.#hasValue(piece)) found.set(id, { reason: BY_VALUE, excusable: false })
        else if (!found.has(id)) {
          const what = keyIn(piece.toString('latin1'))
          if (what) found.set(id, { reason: `it has ${what}`, excusable: true })
        }
        tail = Buffer.from(piece.subarray(Math.max(0, piece.length - this.#overlap)))
      }
    }
    return found
  }

  #hasValue(bytes: Buffer): boolean {
    return this.#needles.some((needle) => bytes.includes(needle))
  }
}

function excusable(reason: string, path: string): string {
  // No `.gitignore` line can include a path that reads as a pattern.
  if (exceptionsIn(`!/${path}`)[0] !== path) return reason
  return `${reason}; the line !/${path} in .gitignore lets it in`
}
