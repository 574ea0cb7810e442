/** The kind of operation that docs/architecture.md adds as an example compiles and runs. The page stays short. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { uuidv7 } from 'uuidv7'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { readOperation } from './rows.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../../..')
const CATALOG = 'src/operations/catalog.ts'
const TABLE = 'const kinds = {\n'
const FILES = ['src', 'workers', 'agentd', 'package.json', 'tsconfig.json']
const PAGE = join(ROOT, 'docs/architecture.md')
/** Files that a reader needs to follow an operation from its request to its end. */
const MAX_READ = 10
/** The page can be read in ten minutes. */
const MAX_WORDS = 2400

/** The code blocks of the documentation, by the file that each belongs to. */
async function readExample(): Promise<Map<string, string>> {
  const text = await readFile(PAGE, 'utf8')
  const chapter = /### Adding a kind of operation\n([\s\S]*?)\n## /.exec(text)?.[1] ?? ''
  const blocks = [...chapter.matchAll(/```ts\n\/\/ ([\w./-]+).*\n([\s\S]*?)```/g)]
  return new Map(blocks.map(([, file = '', code = '']) => [file, code]))
}

describe('the worked example of an operation', () => {
  let dir: string
  let database: TestDatabase
  let storage: Storage
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-example-'))
    for (const file of FILES) await cp(join(ROOT, file), join(dir, file), { recursive: true })
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
    const blocks = await readExample()
    assert.deepEqual(
      [...blocks.keys()],
      [CATALOG, 'workers/handlers/file-measure.ts', 'src/files/measure.ts'],
    )
    for (const [file, code] of blocks) {
      const before = file === CATALOG ? await readFile(join(dir, file), 'utf8') : TABLE
      const after = file === CATALOG ? before.replace(TABLE, `${TABLE}${code}`) : code
      assert.notEqual(after, before)
      await writeFile(join(dir, file), after)
    }
    const { compilerOptions } = JSON.parse(await readFile(join(dir, 'tsconfig.json'), 'utf8'))
    // The server extends the type of requests.
    const files = [...blocks.keys(), 'workers/registry.ts', 'src/http/server.ts']
    await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    database = await startDatabase()
    storage = createEmbeddedStorage({ dir: join(dir, 'store'), network: 'public' })
    await storage.start()
  })
  after(async () => {
    await storage?.stop()
    await database?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('the worked example of an operation compiles', async () => {
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const { stdout } = await run(tsc, ['-p', dir]).catch((failed) => assert.fail(failed.stdout))
    assert.equal(stdout, '')
  })

  it('the worked example of an operation needs only these files to run', async () => {
    const load = (file: string) => import(pathToFileURL(join(dir, file)).href)
    const { Runner } = await load('src/operations/runner.ts')
    const { enqueue } = await load('src/operations/enqueue.ts')
    const { createPrisma } = await load('src/db/prisma.ts')
    const { loadHandlers } = await load('workers/registry.ts')
    const { pool, log } = database
    const prisma = createPrisma(pool)
    const workspaceId = await database.createWorkspace()
    const id = uuidv7()
    async function* bytes() {
      yield Buffer.from('twelve bytes')
    }
    async function* entries() {
      yield { path: 'file', content: bytes() }
    }
    const { cid } = await storage.add(entries(), { signal: AbortSignal.timeout(10_000) })
    await pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, size, keyvalues, host_nodes, pinned_at)
       VALUES ($1, $2, 'public', 'pinned', $3, $3, 0, '{}', '{}', now())`,
      [id, workspaceId, cid.toString()],
    )
    const handlers = await loadHandlers({ pool, prisma, storages: { public: storage } })
    const runner = new Runner({ pool, prisma, leases: pool, workerId: uuidv7(), log, handlers })
    const operationId = await enqueue(pool, 'file.measure', { id, workspaceId })
    await runner.run(operationId)
    const { state, step, result } = await readOperation(pool, operationId)
    assert.deepEqual([state, step, result], ['succeeded', 'counting', { bytes: 12 }])
    const { rows } = await pool.query('SELECT size::int AS size FROM file WHERE id = $1', [id])
    assert.deepEqual(rows, [{ size: 12 }])
  })
})

describe('the architecture page', () => {
  it('the architecture page can be read in ten minutes', async () => {
    const words = (await readFile(PAGE, 'utf8')).split(/\s+/).length
    assert.ok(words <= MAX_WORDS, `${words} words`)
  })

  it('the architecture page names the few files to read to follow an operation', async () => {
    const text = await readFile(PAGE, 'utf8')
    const [way = ''] = /## The way of an operation\n[\s\S]*?\n### /.exec(text) ?? []
    const files = new Set(way.match(/(?<=\]\()[^)]+\.ts(?=\))/g))
    assert.ok(files.size > 0 && files.size <= MAX_READ, `${files.size} files`)
  })
})
