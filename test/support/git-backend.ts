/**
 * A bare repository behind `git http-backend`, the minimum that serves git over HTTP: a CGI process for each request.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface GitBackend {
  url: string
  close(): Promise<void>
}

/** @param root a folder of bare repositories, which accept pushes. */
export async function startGitBackend(root: string): Promise<GitBackend> {
  // A client that leaves ends the response.
  const server = createServer((req, res) => void answer(root, req, res).catch(() => res.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(root: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const [path = '', query = ''] = (req.url ?? '').split('?')
  const { headers } = req
  const env = {
    PATH: process.env.PATH,
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: '1',
    // A client with a name may push.
    REMOTE_USER: 'bench',
    REQUEST_METHOD: req.method,
    PATH_INFO: path,
    QUERY_STRING: query,
    CONTENT_TYPE: headers['content-type'] ?? '',
    ...(headers['content-length'] && { CONTENT_LENGTH: headers['content-length'] }),
    HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
    GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
  }
  const child = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  // The process may exit before it has read a request that it refuses.
  child.stdin.on('error', () => {})
  req.pipe(child.stdin)
  // Git would wait forever for a client that has gone away, and this process for git.
  res.once('close', () => {
    child.stdin.destroy()
    child.stdout.destroy()
  })
  let head = Buffer.alloc(0)
  let isSent = false
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    if (isSent) {
      if (!res.write(chunk)) await once(res, 'drain')
      continue
    }
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end === -1) continue
    const lines = head.toString('latin1', 0, end).split('\r\n')
    const fields = lines.map((line) => line.split(': ') as [string, string])
    const status = fields.find(([name]) => name === 'Status')?.[1]
    for (const [name, value] of fields) if (name !== 'Status') res.setHeader(name, value)
    res.writeHead(status ? Number.parseInt(status, 10) : 200)
    isSent = true
    res.write(head.subarray(end + 4))
  }
  res.end()
}
