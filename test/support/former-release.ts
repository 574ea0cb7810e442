/** The previous version as an operator runs it: its tree, from the history. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The commit of 0.3.0, which can run next to this version during an update. */
const FORMER = '91c79b3700ffabce28699d605854f259a9949773'
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const execute = promisify(execFile)

export interface FormerRelease {
  dir: string
  remove(): Promise<void>
}

/** True if the history has the former release; a shallow clone does not. */
export const hasFormerRelease: boolean = await execute('git', ['cat-file', '-e', `${FORMER}^{commit}`], {
  cwd: ROOT,
}).then(
  () => true,
  () => false,
)

/** Puts its tree into a folder, with the packages that it was released with. */
export async function openFormerRelease(): Promise<FormerRelease> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-former-'))
  const archive = join(dir, 'tree.tar')
  await execute('git', ['archive', '--output', archive, FORMER], { cwd: ROOT })
  await execute('tar', ['--extract', '--file', archive, '--directory', dir])
  const [former, current] = await Promise.all([readVersions(dir), readVersions(ROOT)])
  if ([...former].every(([path, version]) => current.get(path) === version))
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  else await execute('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir })
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) }
}

/** The version of each package installed without development dependencies, by path. */
async function readVersions(dir: string): Promise<Map<string, string>> {
  const lock: { packages: Record<string, { version: string; dev?: boolean }> } = JSON.parse(
    await readFile(join(dir, 'package-lock.json'), 'utf8'),
  )
  const packages = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && !dev)
  return new Map(packages.map(([path, { version }]) => [path, version]))
}
