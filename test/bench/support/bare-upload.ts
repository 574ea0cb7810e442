/**
 * The alternative to an upload to the embedded node: a server that accepts the same form without parsing it. `POST
 * /hash` hashes what it is sent; `POST /store` also writes it into a file that is on the disk before the response.
 */
import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const path = join(tmpdir(), `berth-bench-bare-${process.pid}`)

createServer(async (req, res) => {
  const hash = createHash('sha256')
  const file = req.url === '/store' ? await open(path, 'w') : undefined
  for await (const chunk of req) {
    hash.update(chunk)
    await file?.write(chunk)
  }
  await file?.datasync()
  await file?.close()
  res.end(hash.digest('hex'))
  await rm(path, { force: true })
}).listen(Number(process.env.PORT), '127.0.0.1')
