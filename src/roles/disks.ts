/**
 * The disk helper: HTTP on a Unix socket, only for `worker`. It accepts an agent's id and a size, and nothing else.
 *
 * - `GET /disks`: `{disks: [{agentId, usedBytes, limitBytes}], room: {free, size}}`
 * - `PUT /disks/{agentId}` with `{"bytes": n | null}`: `{device, subvolume}`, 507 if there is no room
 * - `DELETE /disks/{agentId}`: 204, even if there is no disk
 *
 * An error is `{"error"}`.
 */
import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Config } from '../config.ts'
import { AgentDisks, NoRoom } from '../disks/agent-disks.ts'
import { openPool } from '../disks/pool.ts'
import { ConfigError } from '../errors.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import { reserveSetting } from '../lib/disk.ts'
import { bindSocket } from '../lib/net/bind.ts'
import type { Logger } from '../log.ts'
import type { RunningRole } from './running-role.ts'

const MIB = 1_048_576

/**
 * Starts the disk helper, which needs permission to mount: root, or CAP_SYS_ADMIN. When it ends, the disks of running
 * agents stay.
 * @throws ConfigError
 */
export async function openDisks(config: Config, log: Logger): Promise<RunningRole> {
  const { BERTH_DISKS_SOCKET: socket, BERTH_DISKS_DIR: dir, BERTH_DISKS_DEVICE: device } = config
  const { BERTH_DISKS_MB: megabytes } = config
  if (!socket) throw new ConfigError('BERTH_DISKS_SOCKET: set it to where `worker` reaches the disk helper')
  const imageBytes = megabytes === undefined ? undefined : megabytes * MIB
  const pool = await openPool({ dir, device, imageBytes })
  const disks = await AgentDisks.open(pool, reserveSetting(config))
  const server = createDisksServer(disks, log)
  await bindSocket(server, socket, 'BERTH_DISKS_SOCKET')
  // For the group that this process was started with: the worker's.
  await chmod(socket, 0o660)
  void disks.sweep()
  log.info({ socket, device: device ?? 'image' }, 'the disk helper listens')
  return {
    async stop() {
      await new Promise((resolve) => server.close(resolve))
      pool.release()
    },
  }
}

const BODY_BYTES = 1024
/** Below this size, btrfs has hardly any room for its own tables. */
const LEAST_BYTES = 16 * 1024 * 1024
const MAX_BYTES = 2 ** 50

export function createDisksServer(disks: AgentDisks, log: Logger): Server {
  return createServer({ requestTimeout: 10_000 }, async (req, res) => {
    const { status, body } = await answer(disks, req).catch((error) => {
      if (!(error instanceof NoRoom)) log.error({ err: error, url: req.url }, 'a disk could not be changed')
      return { status: error instanceof NoRoom ? 507 : 500, body: { error: (error as Error).message } }
    })
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function answer(disks: AgentDisks, req: IncomingMessage): Promise<{ status: number; body?: unknown }> {
  const { method, url = '' } = req
  if (url === '/disks' && method === 'GET') return { status: 200, body: await disks.read() }
  const agentId = url.startsWith('/disks/') ? url.slice('/disks/'.length) : ''
  if (!AGENT_ID.test(agentId)) return { status: 400, body: { error: 'not the id of an agent' } }
  if (method === 'DELETE') {
    await disks.remove(agentId)
    return { status: 204 }
  }
  if (method !== 'PUT') return { status: 405, body: { error: 'PUT or DELETE' } }
  const bytes = await readSize(req)
  if (bytes === undefined) return { status: 400, body: { error: 'bytes: must be a size, or null' } }
  return { status: 200, body: await disks.ensure(agentId, bytes) }
}

/** Undefined if the body is invalid. */
async function readSize(req: IncomingMessage): Promise<number | null | undefined> {
  let text = ''
  for await (const chunk of req) {
    text += chunk
    if (text.length > BODY_BYTES) return undefined
  }
  try {
    const { bytes } = JSON.parse(text)
    if (bytes === null) return null
    return Number.isSafeInteger(bytes) && bytes >= LEAST_BYTES && bytes <= MAX_BYTES ? bytes : undefined
  } catch {
    return undefined
  }
}
