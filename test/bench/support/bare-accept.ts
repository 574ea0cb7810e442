/**
 * The alternative to the accept path: the least that an Express server could do for a pin request. One row with `pg`,
 * one BullMQ job on Redis. No keys, no checks, no operation, no second row.
 */
import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import express from 'express'
import pg from 'pg'

const { PORT, DATABASE_URL, REDIS_URL, POOL } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL) })
await pool.query(`CREATE TABLE IF NOT EXISTS bare_pin (
  id uuid PRIMARY KEY, cid text NOT NULL, name text, keyvalues jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now())`)
const queue = new Queue('bare', {
  connection: { ...(REDIS_URL !== undefined && { url: REDIS_URL }) },
  defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
})

const app = express()
app.post('/pin', express.json(), async (req, res) => {
  const { cid, name, keyvalues } = req.body
  const { rows } = await pool.query({
    name: 'accept',
    text: 'INSERT INTO bare_pin (id, cid, name, keyvalues) VALUES ($1, $2, $3, $4) RETURNING *',
    values: [randomUUID(), cid, name, keyvalues],
  })
  await queue.add('pin', { id: rows[0].id })
  res.json({ data: rows[0] })
})
app.listen(Number(PORT), '127.0.0.1')
