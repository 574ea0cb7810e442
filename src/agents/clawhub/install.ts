/** Installs skills from the hub into a workspace's library. */

import { ApiError } from '../../errors.ts'
import { releaseContent } from '../../files/held-content.ts'
import { within } from '../../lib/signals.ts'
import { writeFiles } from '../../storage/dag/unixfs-write.ts'
import type { AgentServices } from '../agent-route.ts'
import { checkSkill, type SkillFile } from '../skills/files.ts'
import { addSkill, addVersion, findSkill, type Owner } from '../skills/library.ts'
import { BadSkill, type SkillMd } from '../skills/skill-md.ts'
import type { SkillRecord } from '../skills/skill-schema.ts'
import type { HubEntry } from './clawhub-schema.ts'
import { findInHub } from './hub.ts'

type Services = Pick<AgentServices, 'pool' | 'prisma' | 'storages' | 'config'>

const STORE_MS = 60_000
const MAX_DESCRIPTION = 10_000

/**
 * Installs a skill of the hub into a library, with its folder on public IPFS. An installed skill gets the hub's version
 * if that is new; otherwise nothing changes.
 * @throws ApiError 404 if the hub has no such skill; 502 if its skill is unsafe or invalid; 503 if it does not respond;
 *   409 if the name belongs to a skill that is not from the hub.
 */
export async function installSkill(
  services: Services,
  owner: Owner,
  slug: string,
  signal: AbortSignal,
): Promise<SkillRecord> {
  const { pool, storages } = services
  const entry = await findInHub(services.config, slug)
  const { files, about } = await readEntry(entry, signal)
  const bounded = within(STORE_MS, signal)
  const stored = await storages.public.build((put) => writeFiles(files, put), { base: null, signal: bounded })
  const cid = stored.toString()
  try {
    return await keep(services, owner, entry, { cid, version: about.version ?? entry.version })
  } catch (error) {
    // Nothing keeps the content now, unless others use it.
    await releaseContent(pool, [{ workspaceId: owner.workspaceId, network: 'public', cid }])
    throw error
  }
}

/**
 * Installs the skills named by slugs (`@owner/name`), unless the library has a skill with this slug or name. Skips
 * slugs that the hub does not know: attaching them fails later.
 * @throws ApiError as {@link installSkill}, except 404.
 */
export async function installMissing(
  services: Services,
  { workspaceId, userId }: Owner,
  asked: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const slugs = [...new Set(asked)].filter((one) => one.startsWith('@'))
  if (slugs.length === 0) return
  const found = await services.prisma.skill.findMany({
    where: { workspaceId, OR: [{ slug: { in: slugs } }, { name: { in: slugs } }] },
    select: { slug: true, name: true },
  })
  for (const slug of slugs) {
    if (found.some((skill) => skill.slug === slug || skill.name === slug)) continue
    await installSkill(services, { workspaceId, userId }, slug, signal).catch((error) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    })
  }
}

/** @throws ApiError 502 if an agent could not unpack the skill. */
async function readEntry(
  entry: HubEntry,
  signal: AbortSignal,
): Promise<{ files: SkillFile[]; about: SkillMd }> {
  try {
    const files = await entry.files(signal)
    return { files, about: checkSkill(files) }
  } catch (error) {
    if (!(error instanceof BadSkill)) throw error
    throw new ApiError(502, 'hub_skill_refused', `The hub’s skill is refused: ${error.message}`)
  }
}

async function keep(
  services: Services,
  owner: Owner,
  { slug, description, envVars }: HubEntry,
  { cid, version }: { cid: string; version: string | null },
): Promise<SkillRecord> {
  const content = { cid, network: 'public', version } as const
  const there = await findSkill(services.pool, owner.workspaceId, { slug })
  if (there) {
    await addVersion(services, owner, there.skillId, content)
    return (await findSkill(services.pool, owner.workspaceId, { slug })) ?? there
  }
  const skill = {
    name: slug,
    slug,
    description: description.slice(0, MAX_DESCRIPTION),
    envVars: envVars.map(({ name, description }) => ({ name, ...(description && { description }) })),
  }
  const added = await addSkill(services, owner, skill, content)
  if (added.slug !== slug)
    throw new ApiError(409, 'duplicate_skill', `The library has this content already, as ${added.name}`)
  return added
}
