/**
 * The alternative to a mix of requests about files: the least that Express, pg, BullMQ and Kubo need for the same. No
 * keys, no checks, no operations, no events; a job that is lost stays lost. `web` or `worker` is its argument.
 */
import { randomUUID } from 'node:crypto'
import { Busboy } from '@fastify/busboy'
import { Queue, Worker } from 'bullmq'
import express from 'express'
import pg from 'pg'

const { PORT, DATABASE_URL, REDIS_URL, KUBO } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 })
const connection = { ...(REDIS_URL !== undefined && { url: REDIS_URL }) }
const PINS = 16
const LIST = `SELECT * FROM file WHERE workspace_id = $1 AND network = 'public' AND status = 'pinned' AND removed_at IS NULL`
const PAGE = 'ORDER BY removed_at DESC, id DESC LIMIT 10'

const query = async (name: string, text: string, values: unknown[]) =>
  (await pool.query({ name, text, values })).rows

/** A call of the node's API; without Kubo nothing is stored. */
const kubo = async (path: string, body?: FormData) => {
  if (!KUBO) return {}
  const response = await fetch(`${KUBO}/api/v0/${path}`, { method: 'POST', body: body ?? null })
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return (await response.json()) as { Hash?: string }
}

if (process.argv[2] === 'worker') {
  new Worker(
    'bare-mixed',
    async ({ data: { id, cid, kind } }) => {
      await kubo(`pin/${kind}?arg=${cid}`).catch(() => {})
      if (kind === 'add') await query('pinned', `UPDATE bare_file SET status = 'pinned' WHERE id = $1`, [id])
    },
    { connection, concurrency: PINS },
  )
} else serve()

function serve(): void {
  const queue = new Queue('bare-mixed', {
    connection,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  })
  const app = express()
  const insert = (values: unknown[]) =>
    query('insert', 'INSERT INTO bare_file VALUES ($1, $2, $3, $4, $5, $6) RETURNING *', values)

  app.get('/v3/files/public', async (req, res) => {
    const { name } = req.query
    const files = name
      ? await query('search', `${LIST} AND name ILIKE $2 ${PAGE}`, [req.get('workspace'), `%${name}%`])
      : await query('list', `${LIST} ${PAGE}`, [req.get('workspace')])
    res.json({ data: { files } })
  })
  app.get('/v3/files/public/:id', async (req, res) => {
    const [file] = await query('detail', 'SELECT * FROM file WHERE id = $1', [req.params.id])
    res.json({ data: file })
  })
  app.get('/v0/operations/:id', async (req, res) => {
    const [file] = await query('poll', 'SELECT id, status FROM bare_file WHERE id = $1', [req.params.id])
    res.json({ data: { state: file?.status === 'pinned' ? 'succeeded' : 'running' } })
  })
  app.post('/v3/files/public/pin_by_cid', express.json(), async (req, res) => {
    const { cid, name, keyvalues } = req.body
    const id = randomUUID()
    const [file] = await insert([id, req.get('workspace'), cid, name, keyvalues, 'searching'])
    await queue.add('pin', { id, cid, kind: 'add' })
    res.set('operation-id', id).json({ data: file })
  })
  app.post('/v3/files', (req, res, next) => {
    const form = new Busboy({ headers: { 'content-type': req.get('content-type') ?? '' } })
    const fields: Record<string, string> = {}
    const chunks: Buffer[] = []
    form.on('field', (name, value) => {
      fields[name] = value
    })
    form.on('file', (_field, content) => content.on('data', (chunk) => chunks.push(chunk)))
    form.on('finish', () => void store(fields, Buffer.concat(chunks)).catch(next))
    const store = async ({ keyvalues }: Record<string, string>, bytes: Buffer) => {
      const body = new FormData()
      body.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>]))
      const { Hash: cid = 'none' } = await kubo('add?cid-version=1', body)
      const [file] = await insert([randomUUID(), req.get('workspace'), cid, 'upload', keyvalues, 'pinned'])
      res.json({ data: file })
    }
    req.pipe(form)
  })
  app.put('/v3/files/public/:id', express.json(), async (req, res) => {
    const { name, keyvalues } = req.body
    const text = 'UPDATE bare_file SET name = $2, keyvalues = keyvalues || $3 WHERE id = $1 RETURNING *'
    const [file] = await query('update', text, [req.params.id, name, keyvalues])
    res.json({ data: file })
  })
  app.delete('/v3/files/public/:id', async (req, res) => {
    const text = 'DELETE FROM bare_file WHERE id = $1 RETURNING id, cid'
    const [file] = await query('delete', text, [req.params.id])
    await queue.add('pin', { ...file, kind: 'rm' })
    res.json({ data: null })
  })
  app.listen(Number(PORT), '127.0.0.1')
}
