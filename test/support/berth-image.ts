/**
 * The image of the Dockerfile without Docker, for a node that has no registry: its base from scripts/ci/base-image.sh, the
 * packages by its own command, the files that .dockerignore lets in, and its settings.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { writeImageArchive } from './image-archive.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth')
const INSTALL_MS = 600_000
const run = promisify(execFile)

/** The tar of Debian with Node, npm and what the Dockerfile adds to it. */
export async function baseTar(): Promise<string> {
  const { stdout } = await run(join(ROOT, 'scripts/ci/base-image.sh'), ['tar'], { timeout: INSTALL_MS })
  return stdout.trim().split('\n').at(-1) ?? ''
}

/** Writes an archive of the image, under all of these names. */
export async function packBerthImage(archive: string, names: string[]): Promise<void> {
  const recipe = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
  const work = await mkdtemp(`${archive}.`)
  const app = join(work, 'root/app')
  await mkdir(app, { recursive: true })
  const packages = await installPackages(recipe)
  await cp(packages, join(app, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  for (const file of await contextFiles()) await cp(file, join(app, file.slice(ROOT.length)))
  const layer = join(work, 'app.tar')
  await run('tar', ['-C', join(work, 'root'), '--owner=0', '--group=0', '-cf', layer, 'app'])
  await writeImageArchive(archive, names, [await baseTar(), layer], configOf(recipe))
  await rm(work, { recursive: true })
}

/** The node_modules that the first RUN of the Dockerfile leaves, from a cache. */
async function installPackages(recipe: string): Promise<string> {
  const [, command] = /^RUN --mount=\S+ \\\n((?:.*\\\n)*.*)/m.exec(recipe) ?? []
  if (!command) throw new Error('The Dockerfile has no RUN that installs packages')
  const lock = await readFile(join(ROOT, 'package-lock.json'))
  const key = createHash('sha256').update(command).update(lock).update(process.version).digest('hex')
  const kept = join(CACHE, `berth-packages-${key.slice(0, 16)}`)
  if (!(await stat(kept).catch(() => null))) {
    await mkdir(CACHE, { recursive: true })
    const work = await mkdtemp(join(CACHE, 'berth-packages.'))
    for (const name of ['package.json', 'package-lock.json']) await cp(join(ROOT, name), join(work, name))
    // Node of this checkout, and the npm of the machine.
    const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
    await run('sh', ['-ec', command], { cwd: work, env: { ...process.env, PATH }, timeout: INSTALL_MS })
    // Whole or not at all, also when two of these run side by side.
    await rename(work, kept).catch(() => rm(work, { recursive: true }))
  }
  return join(kept, 'node_modules')
}

/** The files of the checkout that .dockerignore lets in, which has names of files and folders only. */
export async function contextFiles(): Promise<string[]> {
  const rules = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).split('\n')
  const names = rules.flatMap((rule) => (rule.startsWith('!') ? [rule.slice(1)] : []))
  const { stdout } = await run('git', ['ls-files', '-z', '--', ...names], { cwd: ROOT, maxBuffer: 2 ** 24 })
  return stdout
    .split('\0')
    .flatMap((file) => (file === '' || file.endsWith('.test.ts') ? [] : [join(ROOT, file)]))
}

function configOf(recipe: string): object {
  const last = recipe.slice(recipe.lastIndexOf('\nFROM '))
  const of = (word: string) => new RegExp(`^${word} (.*)$`, 'm').exec(last)?.[1] ?? ''
  return {
    User: of('USER'),
    WorkingDir: of('WORKDIR'),
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...of('ENV').split(' ')],
    Cmd: JSON.parse(of('CMD')),
  }
}
