/**
 * Removes engines that are no longer needed. Several Berths may share a Docker engine or a folder: each regularly marks
 * what it needs as used, and engines that nobody marks for the grace period are removed.
 */
import { access, constants, readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { tryLock } from '../lib/process/file-lock.ts'
import { ignoreStatus } from './docker-build.ts'
import { allImages, imageNames } from './image.ts'
import { engineFolder, enginesLock, installedEngines, isEngineVersion, removeHolding } from './install.ts'

export interface Tidying {
  /** Versions that this Berth needs. */
  keep: string[]
  /** Milliseconds without use after which an engine is removed. */
  graceMs: number
}

/**
 * Removes unused engine images, including outdated images of versions in use. Docker keeps images that containers use.
 * @returns the names of the removed images.
 */
export async function tidyImages(
  docker: Docker,
  { keep, graceMs, baseImage }: Tidying & { baseImage: string },
): Promise<string[]> {
  const needed = new Set(
    (await Promise.all(keep.filter(isEngineVersion).map((version) => imageNames(version, baseImage)))).flat(),
  )
  const removed: string[] = []
  for (const { name } of await allImages(docker)) {
    const image = docker.getImage(name)
    if (needed.has(name)) {
      // Docker records when an image was last tagged, even with the name it already has.
      const [repo = '', tag] = name.split(':')
      await image.tag({ repo, ...(tag !== undefined && { tag }) }).catch(ignoreStatus(404))
      continue
    }
    const found = await image.inspect().catch(ignoreStatus(404))
    if (!found || Date.now() - lastUsed(found) < graceMs) continue
    if (await image.remove().catch(ignoreStatus(404, 409))) removed.push(name)
  }
  return removed
}

function lastUsed({ Created, Metadata }: { Created: string; Metadata?: { LastTagTime?: string } }): number {
  return Math.max(Date.parse(Created), Date.parse(Metadata?.LastTagTime ?? Created) || 0)
}

/**
 * Removes unused installed versions and the remains of killed installers. Does nothing while another process installs
 * engines or builds images from them. @returns the removed folders.
 */
export async function tidyInstalled(dir: string, { keep, graceMs }: Tidying): Promise<string[]> {
  const now = new Date()
  for (const version of await installedEngines(dir))
    if (keep.includes(version)) await utimes(engineFolder(dir, version), now, now).catch(() => {})
  // A folder that only other users may change is tidied by them.
  const isOurs = await access(dir, constants.W_OK).then(
    () => true,
    () => false,
  )
  const release = isOurs && tryLock(enginesLock(dir))
  if (!release) return []
  try {
    return await removeOld(dir, keep, now.getTime() - graceMs)
  } finally {
    release()
  }
}

async function removeOld(dir: string, keep: string[], beforeMs: number): Promise<string[]> {
  const removed: string[] = []
  for (const name of await readdir(dir)) {
    const version = /^\d+\.\d+\.\d+/.exec(name)?.[0] ?? ''
    const changed = (await stat(join(dir, name)).catch(() => undefined))?.mtimeMs ?? Infinity
    if (!isEngineVersion(version) || changed > beforeMs) continue
    if (name.includes('.new-')) await rm(join(dir, name), { recursive: true, force: true, maxRetries: 5 })
    else if (keep.includes(version)) continue
    else await removeHolding(dir, version)
    removed.push(join(dir, name))
  }
  return removed
}
