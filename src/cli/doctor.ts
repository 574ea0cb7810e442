/** `berth doctor`: checks the health of each component, and advises on unhealthy ones. */

import { stat } from 'node:fs/promises'
import { styleText } from 'node:util'
import { checkAgentProxy } from '../agent-proxy/checks.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { type Config, loadConfig } from '../config.ts'
import { missingIndexes } from '../db/late-indexes.ts'
import { type Pool, queryOne } from '../db/pool.ts'
import { checkModelKeys, checkRuntime, checkSchema, checkSecrets } from '../health/checks.ts'
import { checkClock, checkNames, checkPermissions } from '../health/machine.ts'
import { observeWorkers } from '../health/workers.ts'
import { checkDisk, disksOf, formatBytes, placeOfUploads, readRoom } from '../lib/disk.ts'
import { type Finding as Health, look } from '../lib/readiness.ts'
import { createLogger } from '../log.ts'
import { inspectRedis } from '../operations/redis.ts'
import { WorkerStatus } from '../operations/worker-status.ts'
import { postgresFolder } from '../standalone/postgres.ts'
import type { Network, Storage } from '../storage/port.ts'
import { withDatabase } from './database.ts'

/** Width of the column of names, in characters. */
const WIDTH = 14
const WEB_MS = 3000

interface Finding {
  part: string
  ok: boolean
  /** Berth works, but someone should look at this: it does not affect the exit code. */
  warning?: boolean
  said: string
  advice?: string | undefined
}

/** Prints a line for each component; the exit code is 1 if any is unhealthy. */
export async function doctor(): Promise<void> {
  const config = loadConfig()
  const findings = [
    toFinding('Data folder', await checkPermissions(config.BERTH_DATA_DIR)),
    await checkRoom(config),
    ...(await checkDatabase()),
    await checkQueue(config),
    ...(await checkIpfs(config)),
    ...(await checkAgents(config)),
    await checkWeb(config),
    ...(await checkTunnels(config)),
    toFinding('Names', await checkNames(config)),
  ]
  for (const { part, ok, warning, said, advice } of findings) {
    const mark = ok ? styleText('green', '✔') : warning ? styleText('yellow', '!') : styleText('red', '✘')
    console.log(`${mark} ${part.padEnd(WIDTH)}${said}`)
    if (!ok && advice) console.log(`  ${' '.repeat(WIDTH)}${styleText('dim', advice)}`)
  }
  if (findings.some(({ ok, warning }) => !ok && !warning)) process.exitCode = 1
}

/** @param otherwise text for a healthy component without details. */
function toFinding(part: string, { status, detail, cause, advice }: Health, otherwise = 'answers'): Finding {
  const said = [detail ?? (status === 'ok' ? otherwise : status), status === 'ok' ? undefined : cause]
  return {
    part,
    ok: status === 'ok',
    warning: status === 'degraded',
    said: said.filter(Boolean).join(': '),
    advice,
  }
}

async function checkRoom(config: Config): Promise<Finding> {
  const web = disksOf(config, 'web', await postgresFolder(config.BERTH_DATA_DIR, config.DATABASE_URL))
  const folders = { ...web.folders, ...disksOf(config, 'worker').folders }
  const room = await readRoom(config.BERTH_DATA_DIR).catch(() => undefined)
  const free = room ? `${formatBytes(room.free)} free of ${formatBytes(room.size)}` : 'unknown'
  return toFinding('Disk', await checkDisk({ ...web, folders }), free)
}

async function checkDatabase(): Promise<Finding[]> {
  try {
    return await withDatabase(
      async ({ pool, config }) => {
        const row = await queryOne<{ server_version: string }>(pool, 'SHOW server_version')
        const where = config.DATABASE_URL ? 'yours' : 'embedded'
        const schema = toFinding('Schema', await checkSchema(pool), 'up to date')
        const found: Finding[] = [
          { part: 'PostgreSQL', ok: true, said: `${row.server_version}, ${where}` },
          schema,
          toFinding('Clock', await checkClock(pool)),
        ]
        if (!schema.ok && !schema.warning) return found
        found.push(await checkIndexes(pool))
        found.push(...(await checkUploads(config, pool)))
        const { workers, ipfs, ipfs_private, docker, kubernetes, processes } = await observeWorkers(
          new WorkerStatus(pool),
        )
        if (workers) found.push(toFinding('Workers', workers))
        // Workers have an embedded node open, so its health comes from them.
        if (ipfs?.detail?.startsWith('embedded')) found.push(toFinding('IPFS', ipfs))
        if (ipfs_private?.detail?.startsWith('embedded')) found.push(toFinding('IPFS private', ipfs_private))
        if (docker) found.push(toFinding('Docker', docker, 'answers the workers'))
        if (kubernetes) found.push(toFinding('Kubernetes', kubernetes, 'answers the workers'))
        if (processes) found.push(toFinding('Processes', processes, 'the workers see them'))
        found.push(toFinding('Model keys', await checkModelKeys(pool), 'outside of sandboxes'))
        found.push(toFinding('Secrets', await checkSecrets(pool)))
        return found
      },
      { schema: 'any' },
    )
  } catch (error) {
    const advice = 'Check DATABASE_URL, or unset it to use the embedded server.'
    return [{ part: 'PostgreSQL', ok: false, said: (error as Error).message, advice }]
  }
}

async function checkIndexes(pool: Pool): Promise<Finding> {
  const missing = await missingIndexes(pool)
  return {
    part: 'Indexes',
    ok: missing.length === 0,
    warning: true,
    said:
      missing.length === 0 ? 'all there' : `without ${missing.join(', ')}, some lists of many rows are slow`,
    advice:
      'A worker builds them. For file_*_part, PostgreSQL must provide pg_trgm and allow the user to CREATE EXTENSION.',
  }
}

/** Nothing if unfinished uploads are in a folder, which counts as a disk. */
async function checkUploads(config: Config, pool: Pool): Promise<Finding[]> {
  if ('dir' in placeOfUploads(config)) return []
  const { openBytes } = await import('../files/uploads/tus-place.ts')
  const bytes = await openBytes(config, pool)
  try {
    for await (const _ of bytes.list()) break
    return [{ part: 'Uploads', ok: true, said: 'their bucket answers' }]
  } catch (error) {
    const advice = 'Check BERTH_UPLOAD_DIR or BERTH_BLOCKS_S3_URL, and the server of the bucket.'
    return [{ part: 'Uploads', ok: false, said: (error as Error).message, advice }]
  } finally {
    bytes.close()
  }
}

async function checkQueue({ REDIS_URL }: Config): Promise<Finding> {
  if (!REDIS_URL) return { part: 'Queue', ok: true, said: 'in PostgreSQL' }
  try {
    await inspectRedis(REDIS_URL)
    return { part: 'Queue', ok: true, said: 'Redis' }
  } catch (error) {
    const advice = 'Check REDIS_URL, and `maxmemory-policy noeviction` in the settings of Redis.'
    return { part: 'Queue', ok: false, said: (error as Error).message, advice }
  }
}

async function checkIpfs(config: Config): Promise<Finding[]> {
  const checks = [checkNode('IPFS', config, 'public'), checkNode('IPFS private', config, 'private')]
  return (await Promise.all(checks)).flat()
}

/** Findings about the runtime of agents; none before the first start, which chooses the runtime. */
async function checkAgents(config: Config): Promise<Finding[]> {
  const { chosenDriver, openRuntime } = await import('../sandboxes/open.ts')
  const { NO_OWNER } = await import('../sandboxes/owner.ts')
  const driver = await chosenDriver(config)
  if (!driver) return []
  const asProcesses = {
    part: 'Agents',
    ok: true,
    said: 'processes of this machine: no container isolates them',
  }
  // Another system user would look in its own folders and see its own processes.
  if (driver === 'process' && !(await isOwner(config.BERTH_DATA_DIR))) return [asProcesses]
  const runtime = await openRuntime(config, createLogger('doctor', 'silent'), NO_OWNER).catch(
    (error: Error) => error,
  )
  if (runtime instanceof Error) return [{ part: 'Agents', ok: false, said: runtime.message }]
  try {
    const finding = await checkRuntime(runtime, config.DOCKER_HOST)
    if (finding.status !== 'ok') return [toFinding('Agents', finding)]
    if (driver === 'process') return [asProcesses]
    const versions = (await runtime.engines()).map(({ version }) => version)
    if (driver === 'kubernetes')
      return [{ part: 'Agents', ok: true, said: `in Kubernetes, engine ${versions.join(', ')}` }]
    const said = `in Docker, engine ${versions.join(', ') || 'built with the first agent'}`
    return [{ part: 'Agents', ok: true, said }, ...(await measureDocker(config))]
  } finally {
    await runtime.close()
  }
}

const isOwner = (dir: string): Promise<boolean> =>
  stat(dir).then(
    ({ uid }) => uid === process.getuid?.(),
    () => false,
  )

/**
 * Lines about this Berth's images and containers in Docker; none if Docker or the database is unavailable, which is
 * reported elsewhere.
 */
async function measureDocker(config: Config): Promise<Finding[]> {
  const { readOwner } = await import('../sandboxes/owner.ts')
  const { dockerUsage, formatUsage } = await import('../sandboxes/docker/usage.ts')
  const usage = await withDatabase(async ({ pool }) =>
    dockerUsage(config.DOCKER_HOST, await readOwner(pool)),
  ).catch(() => undefined)
  if (!usage) return []
  return [{ part: 'Docker', ok: true, said: formatUsage(usage) }]
}

/** Checks the agent proxy. Without a setting, only `npm start` knows its address, and `web` reports on it. */
async function checkTunnels(config: Config): Promise<Finding[]> {
  if (!config.BERTH_AGENT_PROXY_URL && !config.BERTH_AGENT_PROXY_SOCKET && !config.BERTH_AGENT_PROXY_PORT)
    return []
  return [toFinding('Host', await look(() => checkAgentProxy(loadAgentProxy(config))))]
}

/** Queries the web process, because only it knows its dispatcher; it may run on another machine. */
async function checkWeb(config: Config): Promise<Finding> {
  const url = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`
  try {
    const answer = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(WEB_MS) })
    const { status, parts } = (await answer.json()) as { status: string; parts: Record<string, Health> }
    // In a worker's container, `localhost` is that worker.
    if (!parts.dispatcher) return elsewhere(`another role answers at ${url}`, 'Run this where `web` runs.')
    const bad = Object.entries(parts).filter((part) => part[1].status !== 'ok')
    const said = bad.map(([name, part]) => `${name}: ${part.detail ?? part.status}`).join('; ')
    const warning = status === 'degraded'
    return { part: 'Web', ok: status === 'ok', warning, said: said || url, advice: 'See the log of `web`.' }
  } catch {
    return elsewhere(
      `nothing answers at ${url}`,
      'Run `npm start`, or `node src/main.ts web`; check PUBLIC_URL.',
    )
  }
}

const elsewhere = (said: string, advice: string): Finding => ({
  part: 'Web',
  ok: false,
  warning: true,
  said,
  advice,
})

async function checkNode(part: string, config: Config, network: Network): Promise<Finding[]> {
  const { createStorage, nodesOf } = await import('../storage/open.ts')
  const { apiUrl, clusterUrl, previous, setting, clusterSetting } = nodesOf(config, network)
  if (!apiUrl && !previous) return []
  let storage: Storage | undefined
  try {
    storage = await createStorage({
      config,
      network,
      role: 'web',
      databaseUrl: config.DATABASE_DIRECT_URL ?? config.DATABASE_URL,
    })
    await storage.start()
    const { agent, peerId, peers } = await storage.info({ signal: AbortSignal.timeout(5000) })
    const away = peers?.filter(({ error }) => error !== null).map(({ name, error }) => `${name}: ${error}`)
    if (away?.length) {
      const advice = 'Check the peers with `ipfs-cluster-ctl peers ls`.'
      return [{ part, ok: false, warning: true, said: away.join('; '), advice }]
    }
    const said = [agent, peerId && `peer ${peerId}`].filter(Boolean).join(', ')
    if (!previous) return [{ part, ok: true, said }]
    const advice = `Unset ${setting}_PREVIOUS once \`berth storage verify\` finds everything.`
    return [{ part, ok: false, warning: true, said: `${said}, takes over from the previous node`, advice }]
  } catch (error) {
    const settings = [setting, clusterUrl && clusterSetting, previous && `${setting}_PREVIOUS`]
    const programs = `Kubo${clusterUrl ? ' and its peer run: `ipfs id`, `ipfs-cluster-ctl id`' : ' runs: `ipfs id`'}`
    const advice = `Check ${settings.filter(Boolean).join(' and ')}, and that ${programs}.`
    return [{ part, ok: false, said: (error as Error).message, advice }]
  } finally {
    await storage?.stop()
  }
}
