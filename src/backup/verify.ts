/** `berth backup verify`: checks that a folder of backups has everything that its manifests name, undamaged. */
import type { Network } from '../storage/port.ts'
import { BlockArchive, cidsOf } from './blocks.ts'
import {
  damageOf,
  homeFile,
  linesOf,
  listBackups,
  type Manifest,
  NETWORKS,
  openForReading,
  partOf,
  readCompressed,
  readManifest,
  rootsFile,
  tableFile,
} from './layout.ts'
import { BackupError, type BackupStore } from './store.ts'
import { countRows } from './tables.ts'

export interface VerifyReport {
  backups: string[]
  blocks: number
  bytes: number
  /** Missing and damaged items, one line each. */
  problems: string[]
  /** Content that Berth itself had lost when the newest backup was created. */
  unreadable: Manifest['unreadable']
}

/** @throws BackupError if it is not a folder of backups, or has no backups. */
export async function verifyBackup(
  store: BackupStore,
  { signal, onBlock }: { signal: AbortSignal; onBlock?: (blocks: number, bytes: number) => void },
): Promise<VerifyReport> {
  await openForReading(store)
  const backups = await listBackups(store)
  if (backups.length === 0) throw new BackupError(`${store.where} has no backup that is whole`)
  const report: VerifyReport = { backups, blocks: 0, bytes: 0, problems: [], unreadable: [] }
  const manifests = new Map<string, Manifest>()
  for (const name of backups) {
    const problems = await verifyOne(store, name, manifests)
    report.problems.push(...problems.map((problem) => `backups/${name}/${problem}`))
  }
  for (const network of NETWORKS) {
    const archive = new BlockArchive(store, network)
    const { damaged, incomplete } = await archive.verify(
      cidsOf(rootsOf(store, network, manifests)),
      signal,
      (bytes) => {
        report.blocks++
        report.bytes += bytes
        onBlock?.(report.blocks, report.bytes)
      },
    )
    report.problems.push(
      ...damaged.map((path) => `${path} is damaged`),
      ...incomplete.map(
        ({ root, block }) => `${network} ${root} has not its block ${block}, or a damaged one`,
      ),
    )
  }
  report.unreadable = manifests.get(backups.at(-1) ?? '')?.unreadable ?? []
  return report
}

/** Checks a backup's files. If its manifest can be read, it is added to the others. */
async function verifyOne(
  store: BackupStore,
  name: string,
  manifests: Map<string, Manifest>,
): Promise<string[]> {
  let manifest: Manifest
  try {
    manifest = await readManifest(store, name)
  } catch (error) {
    if (!(error instanceof BackupError)) throw error
    return [`manifest.json: ${error.message}`]
  }
  const problems = await damagedFiles(store, name, manifest)
  if (problems.length === 0) manifests.set(name, manifest)
  return problems
}

/** Files of a backup that differ from its manifest, each with the problem. */
export async function damagedFiles(store: BackupStore, name: string, manifest: Manifest): Promise<string[]> {
  const problems: string[] = []
  for (const [path, expected] of Object.entries(manifest.files)) {
    const damage = await damageOf(store, partOf(name, path), expected)
    if (damage) problems.push(`${path} ${damage}`)
  }
  const listed = [
    ...manifest.tables.map((table) => tableFile(table.name)),
    ...NETWORKS.map((network) => rootsFile(network)),
    ...manifest.homes.map(homeFile),
  ]
  for (const path of listed) if (!(path in manifest.files)) problems.push(`${path} is not in the manifest`)
  if (problems.length > 0) return problems
  for (const { name: table, columns, rows } of manifest.tables) {
    const path = tableFile(table)
    try {
      const found = await countRows(readCompressed(store, partOf(name, path)), columns.length)
      if (found !== rows) problems.push(`${path} has ${found} rows, not ${rows}`)
    } catch (error) {
      problems.push(`${path}: ${(error as Error).message}`)
    }
  }
  return problems
}

/** The roots of all backups that Berth could read when they were created; a root occurs once per list that has it. */
export async function* rootsOf(
  store: BackupStore,
  network: Network,
  manifests: ReadonlyMap<string, Manifest>,
): AsyncGenerator<string> {
  for (const [name, { unreadable }] of manifests) {
    const lost = new Set(unreadable.filter((root) => root.network === network).map(({ cid }) => cid))
    for await (const cid of linesOf(store, partOf(name, rootsFile(network)))) if (!lost.has(cid)) yield cid
  }
}
