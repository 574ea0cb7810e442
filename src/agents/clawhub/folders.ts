/** Hub skills that are folders on this machine: those that ship with Berth, and the operator's. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFiles } from '../../storage/dag/unixfs-write.ts'
import { checkSkill, MAX_BYTES, MAX_FILES, type SkillFile } from '../skills/files.ts'
import { BadSkill } from '../skills/skill-md.ts'
import { SKILL_NAME } from '../skills/skill-schema.ts'
import { type HubEntry, skillJson } from './clawhub-schema.ts'

const BUNDLED = join(import.meta.dirname, 'bundled')

let bundled: Promise<HubEntry[]> | undefined

/** The skills that ship with Berth. Reads them once, and retries after a failure. */
export function bundledSkills(): Promise<HubEntry[]> {
  bundled ??= readFolders(BUNDLED).catch((error) => {
    bundled = undefined
    throw error
  })
  return bundled
}

/**
 * The current skills in `<dir>/<owner>/<name>/`. Invalid skills are left out.
 * @throws Error if the folder cannot be read.
 */
export async function readFolders(dir: string): Promise<HubEntry[]> {
  const entries: HubEntry[] = []
  for (const owner of await foldersIn(dir)) {
    for (const name of await foldersIn(join(dir, owner))) {
      const slug = `@${owner}/${name}`
      const entry = SKILL_NAME.test(slug) ? await readEntry(slug, join(dir, owner, name)) : undefined
      if (entry) entries.push(entry)
    }
  }
  return entries
}

async function readEntry(slug: string, dir: string): Promise<HubEntry | undefined> {
  try {
    const files = await readFiles(dir)
    const { name, description, version } = checkSkill(files)
    const json = files.find(({ path }) => path === 'skill.json')
    const about = skillJson.parse(json ? JSON.parse(Buffer.from(json.bytes).toString('utf8')) : {})
    const changed = (await stat(join(dir, 'SKILL.md'))).mtime.toISOString()
    return {
      ...about,
      authorName: about.authorName ?? slug.slice(1, slug.indexOf('/')),
      skillCid: String(await writeFiles(files, async () => {})),
      name,
      slug,
      description,
      version,
      createdAt: changed,
      updatedAt: changed,
      files: async () => files,
    }
  } catch {
    return undefined
  }
}

/** Files below a folder, without links. @throws BadSkill if there are too many, or if they are too large. */
async function readFiles(dir: string): Promise<SkillFile[]> {
  const files: SkillFile[] = []
  let bytes = 0
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    bytes += (await stat(path)).size
    if (files.length >= MAX_FILES || bytes > MAX_BYTES) throw new BadSkill('it is too large')
    files.push({ path: path.slice(dir.length + 1), bytes: await readFile(path) })
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function foldersIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
}
