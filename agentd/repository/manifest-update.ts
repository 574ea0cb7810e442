import { randomUUID } from 'node:crypto'
import { rename, unlink, writeFile } from 'node:fs/promises'
import { isObject, type Json } from '../json.ts'
import { MANIFEST_BYTES, parseManifest } from '../manifest-check.ts'
import { inFolder, makeFolder, openBelow } from '../tree.ts'
import type { CommitRequest } from './protocol.ts'

const NAME = 'manifest.json'

/**
 * Updates `skills` and `secrets` in the agent's manifest.json; all other parts, and other fields of an entry, stay. A
 * declared secret stays even if none is attached, because the agent needs it. A manifest that is missing, or is not a
 * JSON object, stays unchanged.
 */
export async function updateManifest(
  root: string,
  attached: NonNullable<CommitRequest['manifest']>,
): Promise<void> {
  const text = await readManifest(root)
  if (text === undefined) return
  const manifest = parse(text)
  if (!manifest) return
  const updated = { ...manifest }
  const skills = entries(manifest.skills)
  const secrets = entries(manifest.secrets)
  const newSkills = attached.skills.map(({ name, cid }) => {
    const { clawhub_slug: _, ...rest } = find(skills, name) ?? {}
    return { ...rest, name, cid }
  })
  const missing = attached.secrets.filter(({ name }) => !find(secrets, name))
  if (newSkills.length > 0 || manifest.skills !== undefined) updated.skills = newSkills
  if (missing.length > 0) updated.secrets = [...secrets, ...missing.map(({ name }) => ({ name }))]
  if (JSON.stringify(updated) === JSON.stringify(manifest)) return
  await replace(root, `${JSON.stringify(updated, null, 2)}\n`)
}

async function readManifest(root: string): Promise<string | undefined> {
  const file = await openBelow(root, [NAME]).catch(() => undefined)
  if (!file) return
  await using opened = file
  const stats = await opened.stat()
  if (!stats.isFile() || stats.size > MANIFEST_BYTES) return
  const { bytesRead, buffer } = await opened.read(Buffer.alloc(MANIFEST_BYTES), 0, MANIFEST_BYTES, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

/** The new text appears completely, or not at all. */
async function replace(root: string, text: string): Promise<void> {
  await using folder = await makeFolder(root, [])
  const part = inFolder(folder, `.${randomUUID()}.part`)
  try {
    await writeFile(part, text, { flag: 'wx', mode: 0o644 })
    await rename(part, inFolder(folder, NAME))
  } catch (error) {
    await unlink(part).catch(() => {})
    throw error
  }
}

function parse(text: string): Json | undefined {
  try {
    const value = parseManifest(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function entries(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function find(list: Json[], name: string): Json | undefined {
  return list.find((entry) => entry.name === name)
}
