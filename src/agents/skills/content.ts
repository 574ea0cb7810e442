/** The folders of skills on IPFS: the network where a workspace can read a skill, and its content. */
import { CID } from 'multiformats/cid'
import type { PrismaClient } from '../../db/prisma.ts'
import { PINNED } from '../../files/held-content.ts'
import { within } from '../../lib/signals.ts'
import { readFolder } from '../../storage/dag/folder.ts'
import type { Storages } from '../../storage/open.ts'
import { type Network, StorageError } from '../../storage/port.ts'
import { checkSkill, MAX_BYTES, MAX_FILES, type SkillFile } from './files.ts'
import { BadSkill, type SkillMd } from './skill-md.ts'

const READ_MS = 30_000

export interface SkillContent {
  network: Network
  about: SkillMd
}

/**
 * The folder behind a CID for a workspace: on the public network, or on the private one if the workspace itself keeps
 * it. CIDs are not secret, so naming one must not give access to another workspace's private content.
 * @param cid in its canonical form.
 * @returns undefined if it is not stored here.
 * @throws BadSkill if it is not a skill; StorageError `unavailable`.
 */
export async function findContent(
  { prisma, storages }: { prisma: PrismaClient; storages: Storages },
  workspaceId: string,
  cid: string,
  signal: AbortSignal,
): Promise<SkillContent | undefined> {
  const networks: Network[] = (await keepsPrivately(prisma, workspaceId, cid))
    ? ['public', 'private']
    : ['public']
  for (const network of networks) {
    const files = await readSkill(storages, network, cid, signal)
    if (files) return { network, about: checkSkill(files) }
  }
  return undefined
}

/**
 * The files of a skill from a node's own blocks, unchecked.
 * @returns undefined if a block is missing.
 * @throws BadSkill if it is not a folder, contains links, or exceeds the limits; StorageError `unavailable`.
 */
export async function readSkill(
  storages: Storages,
  network: Network,
  cid: string,
  signal: AbortSignal,
): Promise<SkillFile[] | undefined> {
  const bounded = within(READ_MS, signal)
  const limits = { maxFiles: MAX_FILES, maxBytes: MAX_BYTES, signal: bounded }
  try {
    return await readFolder(storages[network], CID.parse(cid), limits)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    if (error.code === 'not_found') return undefined
    if (error.code === 'invalid_object')
      throw new BadSkill(
        `it is not a folder of files: ${error.message.replace(/^Not a folder to unpack: /, '')}`,
      )
    if (error.code === 'too_large')
      throw new BadSkill(`it has more than ${MAX_FILES} files, or more than ${MAX_BYTES} bytes`)
    throw error
  }
}

async function keepsPrivately(prisma: PrismaClient, workspaceId: string, cid: string): Promise<boolean> {
  const own = { workspaceId, network: 'private' }
  if (await prisma.skillVersion.count({ where: { ...own, cid } })) return true
  return (await prisma.file.count({ where: { ...own, cidV1: cid, ...PINNED } })) > 0
}
