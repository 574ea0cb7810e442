/** `berth doctor`: asks each part how it is, and says what to do about those that are not well. */
import { styleText } from 'node:util'
import { loadConfig } from '../config.ts'
import { isMigrated } from '../db/migrate.ts'
import { inspectRedis } from '../operations/redis.ts'
import { WorkerStatus } from '../operations/workers.ts'
import { withDatabase } from './database.ts'

interface Finding {
  part: string
  ok: boolean
  said: string
  advice?: string
}

/** Prints a line for each part; the exit code is 1 when any of them is not well. */
export async function doctor(): Promise<void> {
  const findings = [...(await checkDatabase()), await checkQueue(), ...(await checkIpfs())]
  for (const { part, ok, said, advice } of findings) {
    console.log(`${ok ? styleText('green', '✔') : styleText('red', '✘')} ${part.padEnd(12)}${said}`)
    if (!ok && advice) console.log(`  ${' '.repeat(12)}${advice}`)
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
        const { count, ipfs } = await new WorkerStatus(pool).read()
        const said = count > 0 ? `${count} running` : 'none running'
        found.push({
          part: 'Workers',
          ok: count > 0,
          said,
          advice: 'Run `npm start`, or `node src/main.ts worker`.',
        })
        if (ipfs?.driver === 'embedded') {
          const node = ipfs.error ?? `embedded, peer ${ipfs.peerId ?? '-'}`
          found.push({ part: 'IPFS', ok: !ipfs.error, said: node, advice: 'See the log of the worker.' })
        }
        return found
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

async function checkIpfs(): Promise<Finding[]> {
  const { IPFS_API_URL } = loadConfig()
  if (!IPFS_API_URL) return []
  const { createKuboStorage } = await import('../storage/kubo.ts')
  const storage = createKuboStorage({ apiUrl: IPFS_API_URL, network: 'public' })
  try {
    await storage.start()
    const { agent, peerId } = await storage.info({ signal: AbortSignal.timeout(5000) })
    return [{ part: 'IPFS', ok: true, said: `${agent}, peer ${peerId}` }]
  } catch (error) {
    const advice = 'Check IPFS_API_URL, and that Kubo runs: `ipfs id`.'
    return [{ part: 'IPFS', ok: false, said: (error as Error).message, advice }]
  } finally {
    await storage.stop()
  }
}
