import { constants, mkdir, open, rename, rm } from 'node:fs/promises'
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
      // A FIFO would hold up whoever opens it.
      await using file = await open(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
      const stats = await file.stat()
      if (!stats.isFile() || stats.size > MAX_BYTES) return undefined
      const value: unknown = JSON.parse(await file.readFile('utf8'))
      return this.#isValid(value) ? value : undefined
    } catch {
      return undefined
    }
  }

  async write(value: T): Promise<void> {
    const part = `${this.#path}.part`
    await mkdir(dirname(this.#path), { recursive: true })
    await rm(part, { force: true })
    {
      await using file = await open(part, 'wx', 0o600)
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
