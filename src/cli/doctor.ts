/** `berth doctor`: asks each part how it is, and says what to do about those that are not well. */
import { styleText } from 'node:util'
import { loadConfig } from '../config.ts'
import { isMigrated } from '../db/migrate.ts'
import { createLogger } from '../log.ts'
import { inspectRedis } from '../operations/redis.ts'
import { type IpfsStatus, WorkerStatus } from '../operations/workers.ts'
import type { KuboOptions } from '../storage/kubo.ts'
import type { Storage } from '../storage/port.ts'
import { withDatabase } from './database.ts'

/** Of the column of names. */
const WIDTH = 14

interface Finding {
  part: string
  ok: boolean
  said: string
  advice?: string
}

/** Prints a line for each part; the exit code is 1 when any of them is not well. */
export async function doctor(): Promise<void> {
  const findings = [
    ...(await checkDatabase()),
    await checkQueue(),
    ...(await checkIpfs()),
    ...(await checkAgents()),
  ]
  for (const { part, ok, said, advice } of findings) {
    console.log(`${ok ? styleText('green', '✔') : styleText('red', '✘')} ${part.padEnd(WIDTH)}${said}`)
    if (!ok && advice) console.log(`  ${' '.repeat(WIDTH)}${advice}`)
  }
  if (findings.some(({ ok }) => !ok)) process.exitCode = 1
}

async function checkDatabase(): Promise<Finding[]> {
  try {
    return await withDatabase(
      async ({ pool, config }) => {
        const { rows } = await pool.query('SHOW server_version')
        const where = config.DATABASE_URL ? 'yours' : 'embedded'
        const current = await isMigrated(pool)
        const found: Finding[] = [
          { part: 'PostgreSQL', ok: true, said: `${rows[0].server_version}, ${where}` },
          {
            part: 'Schema',
            ok: current,
            said: current ? 'up to date' : 'not up to date',
            advice: 'Run `npx berth migrate`.',
          },
        ]
        if (!current) return found
        const { count, ipfs, ipfsPrivate } = await new WorkerStatus(pool).read()
        const said = count > 0 ? `${count} running` : 'none running'
        found.push({
          part: 'Workers',
          ok: count > 0,
          said,
          advice: 'Run `npm start`, or `node src/main.ts worker`.',
        })
        return [...found, ...embeddedNode('IPFS', ipfs), ...embeddedNode('IPFS private', ipfsPrivate)]
      },
      { schema: 'any' },
    )
  } catch (error) {
    const advice = 'Check DATABASE_URL, or unset it to use the embedded server.'
    return [{ part: 'PostgreSQL', ok: false, said: (error as Error).message, advice }]
  }
}

async function checkQueue(): Promise<Finding> {
  const { REDIS_URL } = loadConfig()
  if (!REDIS_URL) return { part: 'Queue', ok: true, said: 'in PostgreSQL' }
  try {
    await inspectRedis(REDIS_URL)
    return { part: 'Queue', ok: true, said: 'Redis' }
  } catch (error) {
    const advice = 'Check REDIS_URL, and `maxmemory-policy noeviction` in the settings of Redis.'
    return { part: 'Queue', ok: false, said: (error as Error).message, advice }
  }
}

/** An embedded node is asked through the workers, who have it open. */
function embeddedNode(part: string, node: IpfsStatus | undefined): Finding[] {
  if (node?.driver !== 'embedded') return []
  const said = node.error ?? (node.peerId ? `embedded, peer ${node.peerId}` : 'embedded')
  return [{ part, ok: !node.error, said, advice: 'See the log of the worker.' }]
}

async function checkIpfs(): Promise<Finding[]> {
  const { IPFS_API_URL, IPFS_PRIVATE_API_URL } = loadConfig()
  const checks = [
    checkKubo('IPFS', 'IPFS_API_URL', { network: 'public', apiUrl: IPFS_API_URL }),
    checkKubo('IPFS private', 'IPFS_PRIVATE_API_URL', {
      network: 'private',
      apiUrl: IPFS_PRIVATE_API_URL,
      otherApiUrl: IPFS_API_URL,
    }),
  ]
  return (await Promise.all(checks)).flat()
}

/** Where agents run; nothing before the first start, which chooses. */
async function checkAgents(): Promise<Finding[]> {
  const config = loadConfig()
  const { chosenRuntime, openContainers } = await import('../containers/open.ts')
  const runtime = await chosenRuntime(config)
  if (!runtime) return []
  if (runtime === 'process')
    return [{ part: 'Agents', ok: true, said: 'processes of this machine: nothing isolates them' }]
  const containers = await openContainers(config, createLogger('doctor', 'silent'))
  try {
    await containers.ping()
    const versions = await containers.engineVersions()
    const said = `in Docker, engine ${versions.join(', ') || 'built with the first agent'}`
    return [{ part: 'Agents', ok: true, said }]
  } catch (error) {
    const advice = 'Check DOCKER_HOST, that Docker runs, and that this user may use it: `docker version`.'
    return [{ part: 'Agents', ok: false, said: (error as Error).message, advice }]
  } finally {
    await containers.close()
  }
}

async function checkKubo(
  part: string,
  setting: string,
  { apiUrl, ...options }: Omit<KuboOptions, 'apiUrl'> & { apiUrl: string | undefined },
): Promise<Finding[]> {
  if (!apiUrl) return []
  const { createKuboStorage } = await import('../storage/kubo.ts')
  let storage: Storage | undefined
  try {
    storage = createKuboStorage({ ...options, apiUrl })
    await storage.start()
    const { agent, peerId } = await storage.info({ signal: AbortSignal.timeout(5000) })
    return [{ part, ok: true, said: `${agent}, peer ${peerId}` }]
  } catch (error) {
    const advice = `Check ${setting}, and that Kubo runs: \`ipfs id\`.`
    return [{ part, ok: false, said: (error as Error).message, advice }]
  } finally {
    await storage?.stop()
  }
}
