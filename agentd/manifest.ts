import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { isErrno } from './errors.ts'
import { MANIFEST_BYTES, parseManifest } from './manifest-check.ts'
import type { Paths } from './paths.ts'

/** The scripts that `manifest.json` in the agent's root names. */
export interface ManifestScripts {
  build: string | null
  start: string | null
}

const NONE: ManifestScripts = { build: null, start: null }

/**
 * Reads the scripts of `clawd/manifest.json`, which the agent may have made into anything.
 * @returns them; and `problem`, why none were found where there should be some.
 */
export async function readScripts(paths: Paths): Promise<{ scripts: ManifestScripts; problem?: string }> {
  try {
    const text = await readBounded(join(paths.root, 'manifest.json'))
    if (text === undefined) return { scripts: NONE }
    const scripts = parseManifest(text)?.scripts
    return { scripts: { build: command(scripts?.build), start: command(scripts?.start) } }
  } catch (error) {
    const problem = error instanceof SyntaxError ? 'it is not valid JSON' : (error as Error).message
    return { scripts: NONE, problem: `manifest.json: ${problem}` }
  }
}

async function readBounded(path: string): Promise<string | undefined> {
  // Not through a link; and a FIFO would hold us for ever.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch((error) => {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined
    if (isErrno(error, 'ELOOP', 'ENXIO')) throw new Error('it is not a plain file')
    throw error
  })
  if (!file) return undefined
  await using opened = file
  const stats = await opened.stat()
  if (!stats.isFile()) throw new Error('it is not a plain file')
  if (stats.size > MANIFEST_BYTES) throw new Error('it is too large')
  // It may grow while it is read.
  const { bytesRead, buffer } = await opened.read(Buffer.alloc(MANIFEST_BYTES), 0, MANIFEST_BYTES, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

function command(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0') ? value : null
}
