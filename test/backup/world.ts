/** A Berth with a bit of everything, a folder for its backups, and Berths that these are restored into. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Client } from '../support/client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { runCli, type Stack } from '../support/stack.ts'

export interface Content {
  id: string
  network: 'public' | 'private'
  cid: string
  bytes: Buffer
}

/** A text that a backup of a table's row must keep unchanged. */
const ODD = JSON.stringify({ odd: 'a\ttab, a\nline, a \\ and \\N, ünï' })

export interface Filled {
  api: Client
  key: string
  contents: Content[]
}

/** A folder that is removed by `remove`. As root, PostgreSQL runs as another user, who must be able to enter. */
export async function makeDir(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'berth-backup-'))
  await chmod(path, 0o711)
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

/** Files of both networks in a group, one of many blocks, a swap, a gateway with a token, a secret, keys. */
export async function fill(stack: Pick<Stack, 'url' | 'createKey'>): Promise<Filled> {
  const key = await stack.createKey()
  const api = await clientOf(stack.url, key)
  const contents: Content[] = []
  const group = (await api.post('/v3/groups/public', { name: 'kept', is_public: true })).body.data
  for (const [index, bytes] of [randomBytes(100), randomBytes(3_500_000), Buffer.from('small')].entries())
    contents.push(
      await upload(api, 'public', bytes, { name: `file-${index}`, group_id: group.id, keyvalues: ODD }),
    )
  contents.push(await upload(api, 'private', randomBytes(2_200_000), { name: 'closed' }))
  const [first, second] = contents
  await api.put(`/v3/files/public/swap/${first?.cid}`, { swap_cid: second?.cid })
  await api.post('/v0/secrets', { name: 'TOKEN', value: 'encrypted value', type: 'secret' })
  return { api, key, contents }
}

export async function clientOf(url: string, key: string): Promise<Client> {
  return new Client(url, await DocumentCheck.load(url), key)
}

export async function upload(
  api: Client,
  network: 'public' | 'private',
  bytes: Buffer,
  fields: Record<string, string> = {},
): Promise<Content> {
  const form = new FormData()
  form.set('network', network)
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('file', new Blob([new Uint8Array(bytes)]), 'file')
  const response = await fetch(`${api.url}/v3/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.key}` },
    body: form,
  })
  if (!response.ok) throw new Error(`upload: ${response.status} ${await response.text()}`)
  const { data } = (await response.json()) as { data: { id: string; cid: string } }
  return { id: data.id, network, cid: data.cid, bytes }
}

/** Runs `berth`. @throws Error with its output if it fails. */
export async function berth(env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(env, ...args)
  if (code !== 0) throw new Error(`berth ${args.join(' ')}: ${code}\n${stdout}${stderr}`)
  return stdout
}

/** The tables of the newest backup: rows by table, as text. */
export async function readTables(dir: string): Promise<Record<string, string>> {
  const newest = (await backupsOf(dir)).at(-1) ?? ''
  const folder = join(dir, 'backups', newest, 'tables')
  const tables: Record<string, string> = {}
  for (const name of (await readdir(folder)).sort())
    tables[name] = gunzipSync(await readFile(join(folder, name))).toString()
  return tables
}

/** Names of the complete backups, oldest first. */
export const backupsOf = async (dir: string): Promise<string[]> =>
  (await readdir(join(dir, 'backups')).catch(() => []))
    .filter((name) => existsSync(join(dir, 'backups', name, 'manifest.json')))
    .sort()

/** Every block file with a hash of its content. */
export async function readBlocks(dir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const entry of await readdir(join(dir, 'ipfs'), { recursive: true, withFileTypes: true }))
    if (entry.isFile() && entry.name.endsWith('.data')) {
      const path = join(entry.parentPath, entry.name)
      found.set(
        path.slice(dir.length + 1),
        createHash('sha256')
          .update(await readFile(path))
          .digest('hex'),
      )
    }
  return found
}
