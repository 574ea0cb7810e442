/**
 * An external hub, through ClawHub's public HTTP API v1 (docs/http-api.md of openclaw/clawhub). Its responses are
 * untrusted: bounded in size and time, and checked.
 */

import { fromBufferPromise } from 'yauzl'
import { z } from 'zod'
import { ApiError } from '../../errors.ts'
import { readWhole } from '../../lib/read.ts'
import { within } from '../../lib/signals.ts'
import { trimSlashes } from '../../lib/slashes.ts'
import { MAX_BYTES, MAX_FILES, type SkillFile } from '../skills/files.ts'
import { BadSkill } from '../skills/skill-md.ts'
import { SEMVER, SKILL_NAME } from '../skills/skill-schema.ts'
import { type HubEntry, type HubQuery, hubAway, noHubSkill } from './clawhub-schema.ts'

const ANSWER_MS = 10_000
const ANSWER_BYTES = 2_097_152
const ARCHIVE_MS = 60_000
const ARCHIVE_BYTES = 16_777_216
const PAGE = 50
const SORTS = { popular: 'downloads', newest: 'createdAt', name: 'updated' } as const
/** A text cut at `max` characters: the upstream's own limits are higher. */
const words = (max: number) =>
  z
    .string()
    .transform((text) => text.replaceAll('\0', '').slice(0, max).toWellFormed())
    .nullish()

const owner = z.object({ handle: z.string(), displayName: words(200), image: words(2000) }).nullish()
const item = z.object({
  slug: z.string(),
  displayName: words(200),
  summary: words(10_000),
  ownerHandle: z.string().nullish(),
  owner,
  version: z.string().nullish(),
  latestVersion: z.object({ version: z.string() }).nullish(),
  createdAt: z.number().nullish(),
  updatedAt: z.number().nullish(),
})
type Item = z.output<typeof item>
/** An item that does not parse becomes null, so that it does not hide the others. */
const items = z.array(item.nullable().catch(null)).max(500)
const listing = z.object({ items, nextCursor: z.string().max(500).nullish() })
const search = z.object({ results: items })
const detail = z.object({
  skill: item,
  latestVersion: z.object({ version: z.string() }).nullish(),
  owner,
  moderation: z.object({ isMalwareBlocked: z.boolean().nullish() }).nullish(),
})

export class Upstream {
  readonly #url: string

  /** @param url of the hub, for example `https://clawhub.ai`. */
  constructor(url: string) {
    this.#url = trimSlashes(url)
  }

  /** A page of its skills. @throws ApiError 503 if the hub does not respond. */
  async list(query: HubQuery, cursor: string): Promise<{ entries: HubEntry[]; nextCursor: string | null }> {
    if (query.q) {
      const found = await this.#get(search, '/api/v1/search', { q: query.q, limit: `${PAGE}` })
      return { entries: this.#entries(found?.results ?? []), nextCursor: null }
    }
    const params = { limit: `${PAGE}`, sort: SORTS[query.sort], ...(cursor && { cursor }) }
    const found = await this.#get(listing, '/api/v1/skills', params)
    return { entries: this.#entries(found?.items ?? []), nextCursor: found?.nextCursor || null }
  }

  /** A skill by its slug in Berth. @throws ApiError 404, including for skills blocked as malware; 503. */
  async find(slug: string): Promise<HubEntry> {
    const [name, handle] = slug.startsWith('@') ? slug.slice(1).split('/').reverse() : [slug]
    const path = `/api/v1/skills/${encodeURIComponent(name as string)}`
    const found = await this.#get(detail, path, handle ? { ownerHandle: handle } : {})
    if (!found || found.moderation?.isMalwareBlocked) throw noHubSkill()
    const { skill, latestVersion } = found
    const entry = this.#entry({ ...skill, owner: found.owner ?? skill.owner, latestVersion })
    // The response may be a skill of another owner, or one that has moved.
    const isAsked = handle === undefined ? entry?.slug.split('/').at(-1) === name : entry?.slug === slug
    if (!entry || !isAsked) throw noHubSkill()
    return entry
  }

  #entries(found: (Item | null)[]): HubEntry[] {
    return found
      .map((one) => one && this.#entry(one))
      .filter((entry) => entry !== null && entry !== undefined)
  }

  #entry(found: Item): HubEntry | undefined {
    const { slug: name, displayName, summary, owner, latestVersion } = found
    const handle = owner?.handle ?? found.ownerHandle
    const slug = handle ? `@${handle}/${name}` : name
    if (!SKILL_NAME.test(slug)) return undefined
    const version = latestVersion?.version ?? found.version ?? null
    const page = handle ? `${this.#url}/${handle}/${name}` : this.#url
    return {
      skillCid: null,
      name: displayName || name,
      slug,
      description: summary ?? '',
      longDescription: null,
      authorName: owner?.displayName || handle || new URL(this.#url).host,
      authorUrl: handle ? `${this.#url}/${handle}` : null,
      authorLogoUrl: owner?.image || null,
      category: 'community',
      tags: [],
      envVars: [],
      readmeUrl: page,
      featured: false,
      version: version !== null && SEMVER.test(version) ? version : null,
      createdAt: isoTime(found.createdAt),
      updatedAt: isoTime(found.updatedAt),
      files: (signal) => this.#download(name, handle ?? undefined, signal),
    }
  }

  async #download(slug: string, ownerHandle: string | undefined, signal: AbortSignal): Promise<SkillFile[]> {
    const url = this.#at('/api/v1/download', { slug, ...(ownerHandle && { ownerHandle }) })
    const response = await this.#fetch(url, within(ARCHIVE_MS, signal), ARCHIVE_BYTES)
    if (!response) throw noHubSkill()
    return unzipSkill(response)
  }

  /** Undefined for 404 and 410. */
  async #get<T>(shape: z.ZodType<T>, path: string, params: Record<string, string>): Promise<T | undefined> {
    const body = await this.#fetch(this.#at(path, params), AbortSignal.timeout(ANSWER_MS), ANSWER_BYTES)
    if (!body) return undefined
    try {
      return shape.parse(JSON.parse(body.toString('utf8')))
    } catch (error) {
      throw hubAway(error)
    }
  }

  async #fetch(url: string, signal: AbortSignal, maxBytes: number): Promise<Buffer | undefined> {
    try {
      const response = await fetch(url, { redirect: 'error', signal })
      if (!response.ok) await response.body?.cancel()
      if (response.status === 404 || response.status === 410) return undefined
      if (!response.ok) throw new Error(`status ${response.status}`)
      return await readWhole(response.body ?? [], maxBytes, () => new Error(`more than ${maxBytes} bytes`))
    } catch (error) {
      throw error instanceof ApiError ? error : hubAway(error)
    }
  }

  #at(path: string, params: Record<string, string>): string {
    return `${this.#url}${path}?${new URLSearchParams(params)}`
  }
}

/** Milliseconds since 1970 as ISO 8601; 1970 if there is no time, or one beyond the range of a date. */
function isoTime(ms: number | null | undefined): string {
  const date = new Date(ms ?? 0)
  return (Number.isNaN(date.getTime()) ? new Date(0) : date).toISOString()
}

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
/** Folders count as entries, too. */
const MAX_ENTRIES = 2 * MAX_FILES

/**
 * The files in a zip, without a top folder that contains them all.
 * @throws BadSkill if it is not a zip, contains links or names that leave the folder, or exceeds the limits of a skill.
 */
export async function unzipSkill(bytes: Buffer): Promise<SkillFile[]> {
  try {
    return withoutFolder(await unzip(bytes))
  } catch (error) {
    if (error instanceof BadSkill) throw error
    throw new BadSkill(`it is not a valid zip: ${(error as Error).message}`)
  }
}

async function unzip(bytes: Buffer): Promise<SkillFile[]> {
  // Refuses names with `..`, backslashes or a leading slash, and entries whose size differs from the stated one.
  const zip = await fromBufferPromise(bytes, { strictFileNames: true, validateEntrySizes: true })
  if (zip.entryCount > MAX_ENTRIES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
  const files: SkillFile[] = []
  let total = 0
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith('/')) continue
    // The Unix file type, if the zip was made on Unix; zero otherwise.
    const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE
    if (type !== 0 && type !== REGULAR) throw new BadSkill(`${entry.fileName} is not a regular file`)
    total += entry.uncompressedSize
    if (files.length >= MAX_FILES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
    if (total > MAX_BYTES) throw new BadSkill(`it has more than ${MAX_BYTES} bytes`)
    const content = await zip.openReadStreamPromise(entry)
    files.push({ path: entry.fileName, bytes: Buffer.concat(await content.toArray()) })
  }
  return files
}

function withoutFolder(files: SkillFile[]): SkillFile[] {
  const [folder] = files[0]?.path.split('/') ?? []
  const prefix = `${folder}/`
  if (files.some(({ path }) => path === 'SKILL.md' || !path.startsWith(prefix))) return files
  return files.map(({ path, bytes }) => ({ path: path.slice(prefix.length), bytes }))
}
