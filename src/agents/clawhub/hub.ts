/** The hub combines the skills that ship with Berth, those in the operator's folder, and those of an external hub. */
import type { Config } from '../../config.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import { badRequest, unavailable } from '../../errors.ts'
import { type HubEntry, type HubQuery, type HubSkill, hubSkillId, noHubSkill } from './clawhub-schema.ts'
import { bundledSkills, readFolders } from './folders.ts'
import { Upstream } from './upstream.ts'

type Settings = Pick<Config, 'BERTH_CLAWHUB_DIR' | 'BERTH_CLAWHUB_URL'>

const PAGE = 50
/** Cursor format: a number is a position among the folders; this prefix marks a cursor of the upstream. */
const UPSTREAM = 'u:'

/**
 * A page of the hub: first all local folders, then the upstream's skills in its own order. So an unavailable upstream
 * hides no local skill.
 * @throws ApiError 400 for a malformed cursor; 503 if an upstream page was requested and the upstream does not respond.
 */
export async function listHub(
  prisma: PrismaClient,
  config: Settings,
  query: HubQuery,
): Promise<{ skills: HubSkill[]; nextCursor: string | null }> {
  const { cursor = '0' } = query
  const local = await localEntries(config)
  if (cursor.startsWith(UPSTREAM)) {
    const upstream = upstreamOf(config, query)
    if (!upstream) throw badRequest('cursor: not one of this list')
    const { entries, nextCursor } = await upstream.list(query, cursor.slice(UPSTREAM.length))
    const others = entries.filter(({ slug }) => !isOurs(slug, local))
    return { skills: await toRecords(prisma, others), nextCursor: nextCursor && UPSTREAM + nextCursor }
  }
  if (!/^\d{1,6}$/.test(cursor)) throw badRequest('cursor: not one of this list')
  const found = sorted(
    await toRecords(
      prisma,
      local.filter((entry) => fits(entry, query)),
    ),
    query.sort,
  )
  const end = Number(cursor) + PAGE
  const next = end < found.length ? String(end) : upstreamOf(config, query) ? UPSTREAM : null
  return { skills: found.slice(Number(cursor), end), nextCursor: next }
}

/**
 * A skill of the hub by its slug. @throws ApiError 404; 503 if only the upstream could have it, and does not respond.
 */
export async function findInHub(config: Settings, slug: string): Promise<HubEntry> {
  const local = await localEntries(config)
  const here = local.find((entry) => entry.slug === slug)
  if (here) return here
  if (!config.BERTH_CLAWHUB_URL || isOurs(slug, local)) throw noHubSkill()
  const found = await new Upstream(config.BERTH_CLAWHUB_URL).find(slug)
  // For a name without an owner, the upstream decides the owner.
  if (isOurs(found.slug, local)) throw noHubSkill()
  return found
}

/** Skills that ship with Berth or belong to its operator are not looked up in the upstream. */
const isOurs = (slug: string, local: HubEntry[]): boolean =>
  slug.startsWith('@berth/') || local.some((entry) => entry.slug === slug)

/** Skills of the hub as clients see them. */
export async function toRecords(prisma: PrismaClient, entries: HubEntry[]): Promise<HubSkill[]> {
  const slugs = entries.map(({ slug }) => slug)
  const installs = await prisma.skill.groupBy({ by: 'slug', where: { slug: { in: slugs } }, _count: true })
  return entries.map(({ files: _, ...entry }) => ({
    hubSkillId: hubSkillId(entry.slug),
    ...entry,
    installCount: installs.find(({ slug }) => slug === entry.slug)?._count ?? 0,
  }))
}

/** An operator's skill does not replace one that ships with Berth. */
async function localEntries({ BERTH_CLAWHUB_DIR: dir }: Settings): Promise<HubEntry[]> {
  const bundled = await bundledSkills()
  if (!dir) return bundled
  const added = await readFolders(dir).catch((error) => {
    throw unavailable('The folder of skills cannot be read', error)
  })
  return [...bundled, ...added.filter(({ slug }) => !bundled.some((entry) => entry.slug === slug))]
}

/** The upstream has neither categories nor featured skills. */
function upstreamOf({ BERTH_CLAWHUB_URL: url }: Settings, query: HubQuery): Upstream | undefined {
  const isOurs = query.featured === 'true' || (query.category !== undefined && query.category !== 'community')
  return url && !isOurs ? new Upstream(url) : undefined
}

function fits(entry: HubEntry, { q = '', category, featured }: HubQuery): boolean {
  if (category !== undefined && entry.category !== category) return false
  if (featured !== undefined && entry.featured !== (featured === 'true')) return false
  const text = [entry.slug, entry.name, entry.description, ...entry.tags].join(' ').toLowerCase()
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function sorted(skills: HubSkill[], sort: HubQuery['sort']): HubSkill[] {
  const byName = (a: HubSkill, b: HubSkill) =>
    a.name.localeCompare(b.name, 'en') || (a.slug < b.slug ? -1 : 1)
  const order = {
    name: byName,
    newest: (a: HubSkill, b: HubSkill) => b.createdAt.localeCompare(a.createdAt) || byName(a, b),
    popular: (a: HubSkill, b: HubSkill) => b.installCount - a.installCount || byName(a, b),
  }
  return skills.sort(order[sort])
}
