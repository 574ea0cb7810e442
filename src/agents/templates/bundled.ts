/** The templates that ship with Berth: folders of `bundled/`, named by their slugs, the same for every workspace. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { writeFiles } from '../../storage/dag/unixfs-write.ts'
import { describeTemplate } from './describe.ts'
import type { Template } from './template.ts'

/** The version that the bundled templates were tested with. */
const ENGINE_VERSION = '2026.9.6'
const FOLDER = join(import.meta.dirname, 'bundled')

export interface BundledTemplate extends Template {
  stored: null
  files: { path: string; text: string }[]
}

let loaded: Promise<BundledTemplate[]> | undefined

/** All of them, by slug. Reads them once, and retries after a failure. */
export function bundledTemplates(): Promise<BundledTemplate[]> {
  loaded ??= load().catch((error) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load(): Promise<BundledTemplate[]> {
  const slugs = (await readdir(FOLDER)).sort()
  return Promise.all(slugs.map(loadOne))
}

async function loadOne(slug: string): Promise<BundledTemplate> {
  const files = await readFiles(join(FOLDER, slug))
  const textOf = (path: string) => files.find((file) => file.path === path)?.text ?? null
  const described = describeTemplate({
    manifest: textOf('manifest.json'),
    readme: textOf('README.md'),
    hasWorkspace: files.some(({ path }) => path.startsWith('workspace/')),
  })
  if ('errors' in described) throw new Error(`the template ${slug} is broken: ${described.errors.join('; ')}`)
  return {
    id: idOf(slug),
    slug,
    name: described.name,
    details: {
      ...described.details,
      openclawVersion: ENGINE_VERSION,
      version: 1,
      commitSha: null,
      git: null,
    },
    snapshotCid: await cidOf(files),
    stored: null,
    submittedBy: null,
    createdAt: null,
    updatedAt: null,
    files,
  }
}

/** The files below a folder, by path. */
async function readFiles(folder: string): Promise<BundledTemplate['files']> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Promise.all(
    files.sort().map(async (file) => ({
      path: relative(folder, file).replaceAll(sep, '/'),
      text: await readFile(file, 'utf8'),
    })),
  )
}

/** An id that depends only on the slug, so that it is the same in every Berth. */
function idOf(slug: string): string {
  const number = BigInt(`0x${createHash('sha256').update(slug).digest('hex')}`)
  return `t${number.toString(36).slice(0, 7)}`
}

/** The CID that an upload of these files would have. Stores nothing, because Berth has the files. */
async function cidOf(files: BundledTemplate['files']): Promise<string> {
  const source = files.map(({ path, text }) => ({ path, bytes: Buffer.from(text) }))
  return `${await writeFiles(source, async () => {})}`
}
