/** The egress proxy's port where none is set: chosen once and kept, since agents' containers hold it. */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { ConfigError } from '../errors.ts'
import { readIfExists, replaceFile } from '../lib/files.ts'
import { withLock } from '../lib/process/file-lock.ts'

/** The port that agents hold which were made before ports were chosen. */
export const FIRST_EGRESS_PORT = 3128
/** Ports that are tried: all but the usual one are outside of the range from which outgoing connections take theirs. */
const TRIES = 20

/**
 * Listens on the port that is kept in `dir`, or, where there is none yet, on the usual one or another that is free,
 * and keeps that. Nobody is told the port before it is on the disk.
 * @param listen resolves with the port when it listens there.
 * @throws ConfigError when the kept port is in use, or a new one cannot be kept.
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
    // The file must name the port of who goes on, and two cannot: they share more than this folder.
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
