/** An agentd that lies about its repository: the sync fails and writes nothing. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { listen } from '../../support/http-server.ts'
import { STAND_IN } from './stand-in.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

type Answer = (req: IncomingMessage, res: ServerResponse) => unknown

const gitHash = (type: string, bytes: Buffer) =>
  createHash('sha1').update(`${type} ${bytes.length}\0`).update(bytes).digest('hex')

const TEXT = Buffer.from('what is in the file\n')
const BLOB = gitHash('blob', TEXT)
const TREE = '1'.repeat(40)
const OBJECT = Buffer.from(`tree ${TREE}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nm\n`)
const COMMIT = gitHash('commit', OBJECT)
const committed = { commit: COMMIT, tree: TREE, isNew: true, object: OBJECT.toString('base64'), leftOut: [] }
const file = { path: 'a.txt', mode: '100644', blob: BLOB, size: TEXT.length, isNew: true }

const lines = (...all: unknown[]) => all.map((line) => `${JSON.stringify(line)}\n`).join('')
const blob = (id: string, size: number, bytes: Buffer | string) =>
  Buffer.concat([Buffer.from(`${id} ${size}\n`), Buffer.from(bytes), Buffer.from('\n')])

/** Truthful responses of an agentd about a commit with one file. */
const HONEST: Record<string, Answer> = {
  commit: (_req, res) => res.end(JSON.stringify(committed)),
  files: (_req, res) => res.end(`${TEXT.length} a.txt\n`),
  changes: (_req, res) => res.end(lines(file)),
  blobs: (_req, res) => res.end(blob(BLOB, TEXT.length, TEXT)),
  diff: (_req, res) => res.end('+what is in the file\n'),
}

/** Writes for as long as somebody reads. */
const endless = (chunk: string) => (_req: IncomingMessage, res: ServerResponse) => {
  const more = () => {
    while (res.write(chunk));
  }
  res.on('drain', more)
  more()
}
const cut = (bytes: Buffer | string) => (_req: IncomingMessage, res: ServerResponse) => {
  res.write(bytes, () => res.destroy())
}

const LIES: [what: string, route: string, answer: Answer][] = [
  [
    'a different commit',
    'commit',
    (_req, res) => res.end(JSON.stringify({ ...committed, commit: '2'.repeat(40) })),
  ],
  [
    'a tree that is not the commit’s',
    'commit',
    (_req, res) => res.end(JSON.stringify({ ...committed, tree: '2'.repeat(40) })),
  ],
  ['a malformed commit', 'commit', (_req, res) => res.end('{"commit":7}')],
  ['a commit without an end', 'commit', endless('"'.repeat(65_536))],
  ['an endless list of files', 'files', endless('1 a\n'.repeat(10_000))],
  ['changes that are not JSON', 'changes', (_req, res) => res.end('nothing\n')],
  ['an endless change', 'changes', endless('x'.repeat(65_536))],
  ['the same change endlessly', 'changes', endless(lines({ path: 'gone', removed: true }).repeat(1000))],
  ['changes that break off', 'changes', cut(lines(file))],
  ['more bytes than its disk holds', 'changes', (_req, res) => res.end(lines({ ...file, size: 2 ** 40 }))],
  ['a path that leads outside', 'changes', (_req, res) => res.end(lines({ ...file, path: '../a' }))],
  ['an absolute path', 'changes', (_req, res) => res.end(lines({ ...file, path: '/a' }))],
  ['a path inside .git', 'changes', (_req, res) => res.end(lines({ ...file, path: '.git/config' }))],
  ['a file of negative size', 'changes', (_req, res) => res.end(lines({ ...file, size: -1 }))],
  ['a file of a different size', 'blobs', (_req, res) => res.end(blob(BLOB, TEXT.length + 1, `${TEXT}x`))],
  [
    'a file with different bytes',
    'blobs',
    (_req, res) => res.end(blob(BLOB, TEXT.length, 'x'.repeat(TEXT.length))),
  ],
  ['another file', 'blobs', (_req, res) => res.end(blob('3'.repeat(40), TEXT.length, TEXT))],
  ['half a file', 'blobs', (_req, res) => res.end(blob(BLOB, TEXT.length, TEXT).subarray(0, 50))],
  ['a file that breaks off', 'blobs', cut(blob(BLOB, TEXT.length, TEXT).subarray(0, 50))],
  [
    'endless files',
    'blobs',
    (req, res) => {
      res.write(blob(BLOB, TEXT.length, TEXT))
      endless('more'.repeat(10_000))(req, res)
    },
  ],
  [
    'no files',
    'blobs',
    (_req, res) => res.writeHead(404).end('{"error":"not_found","message":"no such blob"}'),
  ],
  ['an endless diff', 'diff', endless('+x\n'.repeat(10_000))],
]

let answers = HONEST
const agentd = await listen(async (req, res) => {
  if (req.method === 'POST') await json(req).catch(() => {})
  const route = new URL(req.url ?? '', 'http://agentd').pathname.split('/').at(-1) ?? ''
  await answers[route]?.(req, res)
})

describe('an agentd that lies about its repository', { timeout: 300_000 }, () => {
  let world: AgentsWorld
  let agent: { id: string; agentId: string }
  before(async () => {
    world = await startAgentsWorld()
    const { operationId, ...made } = await world.create(STAND_IN.good)
    agent = made
    await world.database.pool.query(
      `UPDATE operation SET state = 'canceled', finished_at = now() WHERE id = $1`,
      [operationId],
    )
    await world.database.pool.query(`UPDATE agent SET status = 'running', address = $2 WHERE id = $1`, [
      made.id,
      new URL(agentd).host,
    ])
  })
  after(() => world?.stop())
  const sync = async () => world.run(await world.insert(agent, 'agent.sync'))
  const history = async () =>
    (await world.database.pool.query('SELECT cid FROM snapshot WHERE agent_id = $1', [agent.id])).rows

  for (const [what, route, answer] of LIES) {
    it(`an agentd that lies about its repository fails the sync with ${what}`, async () => {
      answers = { ...HONEST, [route]: answer }
      const { state, error, error_cause: cause, error_count } = await sync()
      assert.deepEqual([state, error, error_count], ['failed', 'Sync failed', 0], String(cause))
      assert.ok(cause)
      assert.deepEqual(await history(), [])
    })
  }
  it('an agentd that lies about its repository is believed once it tells the truth', async () => {
    answers = HONEST
    const { state, error_cause: cause } = await sync()
    assert.equal(state, 'succeeded', String(cause))
    assert.equal((await history()).length, 1)
  })
})
