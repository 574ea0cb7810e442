/**
 * The alternative to the users' requests: an Express server that does the minimum for each. No keys, no checks; an
 * upload is read and hashed, but not stored.
 */
import { createHash } from 'node:crypto'
import { Busboy } from '@fastify/busboy'
import express from 'express'
import pg from 'pg'

const { PORT, DATABASE_URL, POOL, FOLDER } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL) })
const app = express()

app.get('/files', async (req, res) => {
  const { rows } = await pool.query({
    name: 'files',
    text: `SELECT id, cid, name, keyvalues, size, number_of_files, mime_type, group_id, created_at FROM file
      WHERE network = 'public' AND status = 'pinned' ORDER BY id DESC LIMIT $1`,
    values: [req.query.limit],
  })
  res.json({ files: rows })
})

app.get('/operations/:id', async (req, res) => {
  const { rows } = await pool.query({
    name: 'operation',
    text: 'SELECT * FROM operation WHERE id = $1',
    values: [req.params.id],
  })
  res.json(rows[0])
})

app.post('/folder', (req, res) => {
  const hashes: string[] = []
  const form = new Busboy({
    headers: { 'content-type': req.get('content-type') ?? '' },
    limits: { files: 10_000 },
  })
  form.on('file', (_field, content) => {
    const hash = createHash('sha256')
    content.on('data', (chunk) => hash.update(chunk))
    content.on('end', () => hashes.push(hash.digest('hex')))
  })
  form.on('finish', () => res.json({ hashes }))
  req.pipe(form)
})

if (FOLDER) app.use(express.static(FOLDER))
app.listen(Number(PORT), '127.0.0.1')
