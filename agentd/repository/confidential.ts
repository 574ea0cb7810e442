/** Files that must not leave the agent with its repository, whatever `.gitignore` says. */

import { readBlobs } from './blobs.ts'
import type { Git } from './git.ts'

/** Shorter values would hit ordinary words. */
const SHORTEST_VALUE = 8
/** Folders count as well, as in `.gitignore`. `.env.example` names secrets, and has none. */
const NAMES = /^(\.env(\..+)?|.+\.key|.+\.pem|secrets.*)$/
const EXAMPLE = '.env.example'

/** True for a path, as git writes it, that must stay out of commits. */
export function isConfidential(path: string): boolean {
  return path.split('/').some((name) => NAMES.test(name) && name !== EXAMPLE)
}

/** Finds values of secrets in contents. */
export class SecretScan {
  readonly #needles: Buffer[]
  readonly #longest: number
  /** The same for the same values. Secret itself. */
  readonly key: string

  /** @param values of the agent's secrets; those that are too short are not looked for. */
  constructor(values: Iterable<string>) {
    const texts = new Set<string>()
    for (const value of values) {
      const text = value.trim()
      if (text.length < SHORTEST_VALUE) continue
      texts.add(text)
      // The text as it is in a JSON file.
      texts.add(JSON.stringify(text).slice(1, -1))
    }
    this.key = JSON.stringify([...texts].sort())
    this.#needles = [...texts].map((text) => Buffer.from(text))
    this.#longest = Math.max(0, ...this.#needles.map(({ length }) => length))
  }

  /** True where there is no secret to look for. */
  get isEmpty(): boolean {
    return this.#needles.length === 0
  }

  /** Finds those of the blobs that hold a secret's value. @param env as of `readBlobs`. */
  async find(git: Git, blobs: string[], env: Record<string, string> = {}): Promise<Set<string>> {
    const found = new Set<string>()
    if (this.isEmpty || blobs.length === 0) return found
    for await (const { id, content } of readBlobs(git, blobs, env)) {
      let tail = Buffer.alloc(0)
      for await (const chunk of content) {
        if (found.has(id)) continue
        // A value may begin in one chunk and end in the next.
        const text = tail.length > 0 ? Buffer.concat([tail, chunk]) : chunk
        if (this.#needles.some((needle) => text.includes(needle))) found.add(id)
        tail = Buffer.from(text.subarray(Math.max(0, text.length - this.#longest + 1)))
      }
    }
    return found
  }
}
