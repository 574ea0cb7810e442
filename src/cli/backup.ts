/** `berth backup` and `berth restore`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { type AgentProxyAddress, loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { AgentdClient } from '../agents/agentd-client.ts'
import { suspendEngine } from '../agents/suspension.ts'
import { type BackupOptions, type BackupProgress, type BackupReport, backup } from '../backup/backup.ts'
import { KEYS } from '../backup/keys.ts'
import { listBackups, openForReading, readManifest } from '../backup/layout.ts'
import { openStore } from '../backup/open-store.ts'
import { type RestoreOptions, restore } from '../backup/restore.ts'
import { type Part, restorePart } from '../backup/restore-part.ts'
import type { RestoreProgress } from '../backup/restore-steps.ts'
import { BackupError, type BackupStore } from '../backup/store.ts'
import { verifyBackup } from '../backup/verify.ts'
import { type Config, loadConfig, startedSocket } from '../config.ts'
import { SandboxError } from '../errors.ts'
import { Closers } from '../lib/closers.ts'
import { formatBytes } from '../lib/disk.ts'
import type { Keep } from '../lib/keep.ts'
import { chosenDriver, openRuntime } from '../sandboxes/open.ts'
import { readOwner } from '../sandboxes/owner.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import { openStorages, type Storages } from '../storage/open.ts'
import { StorageError } from '../storage/port.ts'
import { type Database, withDatabase } from './database.ts'
import { printRows } from './print.ts'

const LINE_MS = 5000
const TERMINAL_LINE_MS = 100

export async function runBackup(
  target: string,
  { withKeys = false, recheck = false, keep }: { withKeys?: boolean; recheck?: boolean; keep?: Keep },
): Promise<void> {
  const store = await open(target)
  const began = performance.now()
  await withStorages(async ({ databaseUrl, storages, signal, ...database }) => {
    const { config } = database
    const passphrase = withKeys ? config.BERTH_BACKUP_PASSPHRASE : undefined
    if (withKeys && !passphrase)
      throw new BackupError('BERTH_BACKUP_PASSPHRASE: not set, and --with-keys encrypts the keys with it')
    console.log(`backing up to ${store.where}`)
    const line = new ProgressLine()
    const onProgress = (progress: BackupProgress) => line.show(tellBackup(progress))
    const runtime = await openContainers(database)
    const agentd = new AgentdClient(findAgentProxy(config))
    try {
      const parts = { config, databaseUrl, storages, runtime }
      const suspend: BackupOptions['suspend'] = async ({ agentId, address }, until) =>
        address === null ? undefined : suspendEngine(agentd, { agentId, address }, until)
      const report = await backup({ store, ...parts, suspend, passphrase, recheck, keep, onProgress, signal })
      line.end()
      printReport(report, store.where, (performance.now() - began) / 1000)
      printKeys(report, withKeys, config)
      if (report.unreadable.length + Object.keys(report.homeless).length > 0) process.exitCode = 1
    } finally {
      line.end()
      agentd.close()
      if ('close' in runtime) await runtime.close()
    }
  })
}

/** The configured agent proxy, or that of an `npm start` on the data folder. */
function findAgentProxy(config: Config): AgentProxyAddress {
  const { BERTH_AGENT_PROXY_SOCKET, BERTH_AGENT_PROXY_URL, BERTH_AGENT_PROXY_PORT } = config
  const isSet = BERTH_AGENT_PROXY_SOCKET || BERTH_AGENT_PROXY_URL || BERTH_AGENT_PROXY_PORT !== undefined
  const socket = isSet ? undefined : startedSocket(config)
  if (socket && existsSync(socket)) return loadAgentProxy({ ...config, BERTH_AGENT_PROXY_SOCKET: socket })
  return loadAgentProxy(config)
}

/** The runtime of agents, or the reason why it is unknown here. */
async function openContainers({ config, log, pool }: Database): Promise<SandboxRuntime | { why: string }> {
  if (!(await chosenDriver(config)))
    return { why: 'agents do not run here: back up where their worker does, or set BERTH_RUNTIME' }
  try {
    return await openRuntime(config, log, await readOwner(pool))
  } catch (error) {
    if (error instanceof SandboxError) return { why: error.message }
    throw error
  }
}

function printReport(
  { name, tables, rows, roots, written, unreadable, homes, unsuspended, homeless, pruned }: BackupReport,
  where: string,
  seconds: number,
) {
  console.log(`  database  ${count(rows, 'row')} of ${count(tables, 'table')}`)
  for (const network of ['public', 'private'] as const)
    console.log(`  ${network.padEnd(8)}  ${count(roots[network], 'root')}`)
  if (homes.length > 0) console.log(`  agents    ${count(homes.length, 'home')}`)
  console.log(
    `  written   ${formatBytes(written.writtenBytes)} in ${count(written.writtenBlocks, 'block')}; the rest was there`,
  )
  console.log(`${styleText('green', '✔')} ${where}/backups/${name}, in ${seconds.toFixed(1)} s`)
  if (pruned.removed.length > 0)
    console.log(
      `  removed   ${count(pruned.removed.length, 'older backup')}, ${formatBytes(pruned.freedBytes)} of blocks`,
    )
  for (const agentId of unsuspended)
    console.log(
      `${styleText('yellow', '!')} ${agentId} was not suspended while its home was read: a file in it may be incomplete`,
    )
  for (const [agentId, why] of Object.entries(homeless))
    console.log(`${styleText('red', '✘')} the home of ${agentId} is not in it: ${why}`)
  if (Object.keys(homeless).length > 0)
    console.log('  Older backups are kept: this one does not replace them.')
  if (unreadable.length === 0) return
  console.log(
    `${styleText('red', '✘')} Berth itself has not got the content of ${count(unreadable.length, 'root')}:`,
  )
  for (const { network, cid, why } of unreadable) console.log(`  ${network} ${cid}: ${why}`)
}

function printKeys({ keys }: BackupReport, withKeys: boolean, config: Config): void {
  if (withKeys) {
    console.log(`${keys.join(' and ')} are in it, encrypted. Keep BERTH_BACKUP_PASSPHRASE elsewhere.`)
  } else {
    console.log('Not in it, keep elsewhere:')
    for (const { setting, file, opens } of KEYS.filter((one) => keys.includes(one.setting))) {
      const place = config[setting] ? 'as it is set' : join(config.BERTH_DATA_DIR, file)
      console.log(`  ${setting}, ${place}: opens the ${opens}`)
    }
  }
  console.log('Settings and unfinished uploads are not in it either.')
}

export async function runVerify(target: string): Promise<void> {
  const store = await open(target)
  const line = new ProgressLine()
  const { backups, blocks, bytes, problems, unreadable } = await verifyBackup(store, {
    signal: untilInterrupted(),
    onBlock: (blocks, bytes) => line.show(`  ${count(blocks, 'block')}, ${formatBytes(bytes)}`),
  }).finally(() => line.end())
  if (problems.length > 0) {
    for (const problem of problems) console.log(`${styleText('red', '✘')} ${problem}`)
    console.log('`berth backup --recheck` rewrites blocks that Berth still has.')
    process.exitCode = 1
    return
  }
  console.log(
    `${styleText('green', '✔')} ${count(backups.length, 'backup')}, ${count(blocks, 'block')}, ${formatBytes(bytes)}: all is there, as it was written`,
  )
  for (const { network, cid } of unreadable)
    console.log(`  ${network} ${cid} is in none: Berth had lost it before the newest backup`)
}

export async function runList(target: string, { json }: { json?: boolean }): Promise<void> {
  const store = await open(target)
  await openForReading(store)
  const rows = []
  for (const name of await listBackups(store)) {
    const { berth, tables, roots, files } = await readManifest(store, name)
    rows.push({
      name,
      berth,
      rows: tables.reduce((sum, table) => sum + table.rows, 0),
      public: roots.public,
      private: roots.private,
      keys: 'keys.age' in files ? 'yes' : 'no',
    })
  }
  printRows(rows, json)
}

interface RestoreArguments {
  backup?: string
  workspace?: string
  agent?: string
  withoutKeys?: boolean
  withoutHomes?: boolean
}

export async function runRestore(target: string, options: RestoreArguments): Promise<void> {
  const { workspace, agent, ...how } = options
  if (workspace !== undefined) return runRestorePart(target, { workspace }, how)
  if (agent !== undefined) return runRestorePart(target, { agent }, how)
  const store = await open(target)
  await withStorages(
    async (parts) => {
      const { config } = parts
      const report = await withProgress(store, parts, how, restore)
      const { public: open, private: closed } = report.roots
      const homes = report.homes.length > 0 ? `, ${count(report.homes.length, 'home')} of agents` : ''
      console.log(
        `${styleText('green', '✔')} restored ${report.name}: ${count(report.rows, 'row')}, ${count(open, 'public root')}, ${count(closed, 'private root')}${homes}`,
      )
      for (const setting of report.keys) console.log(`  ${setting} is under ${config.BERTH_DATA_DIR} now`)
      for (const { network, cid } of report.unreadable)
        console.log(`  ${network} ${cid} is not there: Berth had lost it before the backup`)
    },
    { schema: 'any' },
  )
}

/** Runs a full or partial restore, with a line that shows its progress. */
function withProgress<T>(
  store: BackupStore,
  { config, log, pool, databaseUrl, storages, signal }: Parts,
  { backup: name, ...without }: RestoreArguments,
  work: (options: RestoreOptions) => Promise<T>,
): Promise<T> {
  const line = new ProgressLine()
  const parts = { store, config, pool, databaseUrl, storages, log, signal }
  const onProgress = (progress: RestoreProgress) => line.show(tellRestore(progress))
  const passphrase = config.BERTH_BACKUP_PASSPHRASE
  return work({ ...parts, ...without, name, passphrase, onProgress }).finally(() => line.end())
}

async function runRestorePart(target: string, part: Part, options: RestoreArguments): Promise<void> {
  const store = await open(target)
  await withStorages(async (parts) => {
    const report = await withProgress(store, parts, options, (how) => restorePart({ ...how, part }))
    const { rows, roots, homes } = report
    console.log(
      `${styleText('green', '✔')} restored ${report.what} of ${report.name}: ${count(rows, 'row')}, ${count(roots, 'root')}, ${count(homes.length, 'home')} of agents`,
    )
    for (const note of report.notes) console.log(`  ${note}`)
  })
}

function tellBackup(progress: BackupProgress): string {
  if (progress.part === 'table') return `  database  ${progress.name}, ${count(progress.rows, 'row')}`
  if (progress.part === 'home') return `  agents    ${progress.agentId}`
  const { network, roots, ofRoots, writtenBytes } = progress
  return `  ${network.padEnd(8)}  ${roots} of ${count(ofRoots, 'root')}, ${formatBytes(writtenBytes)} written`
}

function tellRestore(progress: RestoreProgress): string {
  if (progress.part === 'schema')
    return `  schema    ${progress.applied.length === 0 ? 'up to date' : `brought on by ${progress.applied.join(', ')}`}`
  if (progress.part === 'table') return `  database  ${progress.name}, ${count(progress.rows, 'row')}`
  if (progress.part === 'home') return `  agents    ${progress.agentId}`
  return `  ${progress.network.padEnd(8)}  ${progress.roots} of ${count(progress.ofRoots, 'root')}`
}

/** A folder or a bucket of backups; a bucket's connections end with the process. */
const open = (target: string): Promise<BackupStore> =>
  openStore(target, { pathStyle: loadConfig().BERTH_S3_PATH_STYLE })

type Parts = Database & { databaseUrl: string; storages: Storages; signal: AbortSignal }

/** Opens the configured database and both IPFS nodes while `work` runs. */
async function withStorages(
  work: (parts: Parts) => Promise<void>,
  options: { schema?: 'any' } = {},
): Promise<void> {
  const signal = untilInterrupted()
  await withDatabase(async (database) => {
    const parts = new Closers(database.log)
    try {
      // Uses `web`'s node: it serves only the blocks that exist locally.
      const databaseUrl = database.pool.directUrl
      const storages = await openStorages(database.config, 'web', database.log, parts, {
        url: databaseUrl,
      })
      await work({ ...database, databaseUrl, storages, signal })
    } catch (error) {
      if (signal.aborted) throw new BackupError('stopped; run it again to continue', { cause: error })
      if (error instanceof StorageError)
        throw new BackupError(`an IPFS node failed: ${error.message}`, { cause: error })
      throw error
    } finally {
      await parts.close()
    }
  }, options)
}

/** Ctrl-C ends the work in an orderly way; a second Ctrl-C ends the process. */
function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort())
  return controller.signal
}

const count = (n: number, what: string) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`

/** A progress line that is rewritten on a terminal; elsewhere, one line every few seconds. */
class ProgressLine {
  readonly #isTerminal = process.stdout.isTTY === true
  #shown = performance.now()

  show(text: string): void {
    if (performance.now() - this.#shown < (this.#isTerminal ? TERMINAL_LINE_MS : LINE_MS)) return
    this.#shown = performance.now()
    if (this.#isTerminal) process.stdout.write(`\r\x1b[K${text.slice(0, (process.stdout.columns ?? 80) - 1)}`)
    else console.log(text)
  }

  end(): void {
    if (this.#isTerminal) process.stdout.write('\r\x1b[K')
  }
}
