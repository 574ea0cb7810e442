import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const MAX_BYTES = 4096

/** A small JSON file that is there as a whole, or not at all, whenever agentd or the machine stops. */
export class DurableRecord<T> {
  readonly #path: string
  readonly #isValid: (value: unknown) => value is T

  /** @param options.isValid what the agent has written there instead counts as nothing. */
  constructor(options: { path: string; isValid: (value: unknown) => value is T }) {
    this.#path = options.path
    this.#isValid = options.isValid
  }

  async read(): Promise<T | undefined> {
    try {
      const text = await readFile(this.#path, 'utf8')
      const value: unknown = text.length <= MAX_BYTES ? JSON.parse(text) : undefined
      return this.#isValid(value) ? value : undefined
    } catch {
      return undefined
    }
  }

  async write(value: T): Promise<void> {
    const part = `${this.#path}.part`
    await mkdir(dirname(this.#path), { recursive: true })
    {
      await using file = await open(part, 'w', 0o600)
      await file.writeFile(JSON.stringify(value))
      await file.sync()
    }
    await rename(part, this.#path)
    await using folder = await open(dirname(this.#path))
    await folder.sync()
  }

  async clear(): Promise<void> {
    await rm(this.#path, { force: true })
  }
}
