/**
 * A web process with agents whose gateways are servers of the test. The agent proxy and agentd's services (its server,
 * its proxy, its log) are real.
 */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import { logService } from '../../../../agentd/log-service.ts'
import { Log } from '../../../../agentd/logs.ts'
import { portService } from '../../../../agentd/ports.ts'
import type { AgentdConfig, GatewayState } from '../../../../agentd/protocol.ts'
import { proxyService } from '../../../../agentd/proxy.ts'
import { AgentdServer } from '../../../../agentd/server.ts'
import { KeyService } from '../../../../src/accounts/keys.ts'
import { createWorkspace } from '../../../../src/accounts/workspaces.ts'
import { AgentdClient } from '../../../../src/agents/agentd-client.ts'
import { loadConfig } from '../../../../src/config.ts'
import type { Pool } from '../../../../src/db/pool.ts'
import { createPrisma } from '../../../../src/db/prisma.ts'
import { newAgentId } from '../../../../src/lib/agent-id.ts'
import { loadSigningKey } from '../../../../src/lib/signing-keys.ts'
import { createLogger } from '../../../../src/log.ts'
import { openWeb } from '../../../../src/roles/web.ts'
import { AgentHost } from '../../../support/agent-host.ts'
import { insertAgentRow } from '../../../support/agent-row.ts'
import { startDatabase } from '../../../support/database.ts'
import { freePort } from '../../../support/processes.ts'
import { AGENT_PROXY_KEY, openTunnelServer } from '../../../support/tunnel-server.ts'

export const JWT_KEY = 'a key for the tests of agents hosts'
const GATEWAY_TOKEN = "the gateway's own"

export interface TestAgent {
  agentId: string
  token: string
  /** A client of its host with its token. */
  host: AgentHost
  /** A client without a token. */
  stranger: AgentHost
  /** Sets the state that agentd reports of the gateway. */
  setGateway(state: GatewayState): void
  /** Open sockets of the gateway. */
  sockets: WebSocketServer
  log: Log
  /** Stops its agentd. */
  stopAgentd(): Promise<void>
  /** Rotates its token, as its owner can. @param notify whether the web process is notified. */
  rotate(notify?: boolean): Promise<string>
  /** Sets a column of its row. */
  set(column: 'status' | 'address' | 'deleted_at', value: unknown): Promise<void>
}

export interface World {
  url: string
  /** The metrics of `web`, from its port. */
  metrics(): Promise<string>
  pool: Pool
  /** Lines that the web process has logged. */
  lines: string[]
  /** A new agent whose gateway handles requests with `gateway` and echoes WebSocket messages. */
  agent(gateway?: RequestListener): Promise<TestAgent>
  /** Starts another web process on the same database. */
  openWeb(): Promise<{ url: string; stop(): Promise<void> }>
  /** A new API key of the agents' workspace, or of another workspace. */
  key(options?: {
    scopes?: string[]
    elsewhere?: boolean
    expiresAt?: Date
  }): Promise<{ id: string; token: string; userId: string; workspaceId: string }>
  revoke(keyId: string): Promise<void>
  stopWeb(): Promise<void>
  stop(): Promise<void>
}

export async function startWorld(env: Record<string, string> = {}): Promise<World> {
  const database = await startDatabase()
  const { pool } = database
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-vhosts-'))
  const tunnel = await openTunnelServer()
  const [port, metricsPort] = await Promise.all([freePort(), freePort()])
  const url = `http://127.0.0.1:${port}`
  const lines: string[] = []
  const log = createLogger('web', 'debug', { write: (line: string) => void lines.push(line) })
  const settings = {
    DATABASE_URL: database.url,
    BERTH_DATA_DIR: dataDir,
    BERTH_AGENT_PROXY_URL: tunnel.url,
    BERTH_IPFS_ROUTING_URL: '',
    AGENT_PROXY_KEY,
    JWT_KEY,
    ...env,
  }
  const openOn = (PORT: number, BERTH_METRICS_PORT: number) =>
    openWeb(loadConfig({ ...settings, PORT: `${PORT}`, BERTH_METRICS_PORT: `${BERTH_METRICS_PORT}` }), log)
  const web = await openOn(port, metricsPort)
  const prisma = createPrisma(pool)
  const keys = new KeyService(prisma, loadSigningKey(JWT_KEY, dataDir))
  const newWorkspace = () =>
    createWorkspace(prisma, { name: randomUUID(), plan: 'unlimited', owner: 'owner' })
  const home = await newWorkspace()
  const agentd = new AgentdClient({ hostname: '127.0.0.1', port: tunnel.port, key: AGENT_PROXY_KEY })
  const stops: (() => Promise<unknown>)[] = []
  const stopWeb = () => web.stop()

  return {
    url,
    metrics: async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(),
    pool,
    lines,
    stopWeb,
    async openWeb() {
      const [port, metricsPort] = await Promise.all([freePort(), freePort()])
      const { stop } = await openOn(port, metricsPort)
      return { url: `http://127.0.0.1:${port}`, stop }
    },
    async agent(gateway = (_req, res) => res.end()) {
      const agentId = newAgentId()
      let token: string = randomUUID()
      const sockets = new WebSocketServer({ noServer: true })
      sockets.on('connection', (socket) => {
        socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
      })
      const server = createServer(gateway)
      server.on('upgrade', (req, socket, head) =>
        sockets.handleUpgrade(req, socket, head, (webSocket) => sockets.emit('connection', webSocket, req)),
      )
      const port = await listen(server)
      const agentLog = new Log()
      const tokenHash = createHash('sha256').update(agentd.token(agentId)).digest('hex')
      const handle = {
        port,
        token: GATEWAY_TOKEN,
        state: 'ready' as GatewayState,
        env: {},
        ownedConfig: null,
        secrets: [],
      }
      const door = new AgentdServer({
        config: { agentId, tokenHash } as AgentdConfig,
        log: agentLog,
        services: [
          logService({ log: agentLog }),
          proxyService({ gateway: handle, log: agentLog }),
          portService({ gateway: handle }),
        ],
      })
      const address = `127.0.0.1:${await door.listen('127.0.0.1', 0)}`
      stops.push(async () => {
        for (const socket of sockets.clients) socket.terminate()
        server.close()
        server.closeAllConnections()
        await door.close()
      })
      await insertAgentRow(pool, { agentId, workspaceId: home.id, gatewayToken: token, address })
      return {
        agentId,
        token,
        host: new AgentHost(url, agentId, token),
        stranger: new AgentHost(url, agentId),
        setGateway(state) {
          handle.state = state
        },
        sockets,
        log: agentLog,
        stopAgentd: () => door.close(),
        async rotate(notify = true) {
          token = randomUUID()
          await pool.query('UPDATE agent SET gateway_token = $2 WHERE agent_id = $1', [agentId, token])
          if (notify) await pool.query(`SELECT pg_notify('berth_agent', $1)`, [agentId])
          return token
        },
        async set(column, value) {
          await pool.query(`UPDATE agent SET ${column} = $2 WHERE agent_id = $1`, [agentId, value])
          await pool.query(`SELECT pg_notify('berth_agent', $1)`, [agentId])
        },
      }
    },
    async key({ scopes = ['admin'], elsewhere = false, expiresAt } = {}) {
      const { id: workspaceId, ownerId: userId } = elsewhere ? await newWorkspace() : home
      const key = { workspaceId, userId, name: 'test', scopes, expiresAt: expiresAt ?? null }
      return { ...(await keys.create(key)), userId, workspaceId }
    },
    revoke: (keyId) => keys.revoke(keyId),
    async stop() {
      await stopWeb()
      agentd.close()
      for (const stop of stops) await stop()
      await tunnel.tunnelServer.close()
      await database.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
