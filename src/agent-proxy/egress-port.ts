/** The egress proxy's port if no setting names one: chosen once and kept, because agents' containers store it. */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { ConfigError } from '../errors.ts'
import { readIfExists, replaceFile } from '../lib/files.ts'
import { withLock } from '../lib/process/file-lock.ts'

/** The usual port of proxies, which is tried first. */
export const FIRST_EGRESS_PORT = 3128
/** Ports to try. All except the usual one are outside the range that outgoing connections use. */
const TRIES = 20

/**
 * Listens on the port stored in `dir`. If none is stored, listens on the usual port or another free one, and stores it.
 * Returns the port only once it is on disk.
 * @param listen resolves with the port once it listens there.
 * @throws ConfigError if the stored port is in use, or a new one cannot be stored.
 */
export async function listenOnKeptPort(
  dir: string,
  listen: (port: number) => Promise<number>,
): Promise<number> {
  const path = join(dir, 'egress.port')
  const kept = Number(await readIfExists(path))
  if (kept > 0) {
    return listen(kept).catch((error) => {
      throw new ConfigError(`${error.message}; agents hold this port, so ${path} keeps it`)
    })
  }
  const port = await listenSomewhere(listen)
  await withLock(`${path}.mutex`, {}, async () => {
    // The file must name the port of the process that continues. Two cannot both continue: they share more than this
    // folder.
    if (Number(await readIfExists(path)) > 0) throw new Error('another process has just kept its own there')
    await replaceFile(path, `${port}\n`, 0o644)
  }).catch((error) => {
    throw new ConfigError(`BERTH_EGRESS_PORT: not set, and ${path} cannot be written: ${error.message}`)
  })
  return port
}

async function listenSomewhere(listen: (port: number) => Promise<number>): Promise<number> {
  for (let tries = 0; ; tries++) {
    try {
      return await listen(tries === 0 ? FIRST_EGRESS_PORT : randomInt(20_000, 30_000))
    } catch (error) {
      if (tries === TRIES) throw error
    }
  }
}
