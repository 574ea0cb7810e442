/**
 * Builds the Dockerfile's image without Docker, for a node without a registry: its base from scripts/ci/base-image.sh,
 * the packages and compiled code from its own commands, the files that .dockerignore admits, and its settings.
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
  const app = join(work, 'app')
  await mkdir(app, { recursive: true })
  const packages = await installPackages(recipe)
  await cp(packages, join(app, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  for (const file of await contextFiles()) await cp(file, join(app, file.slice(ROOT.length)))
  const base = await baseTar()
  const layer = join(work, 'berth.tar')
  const [, cache = '', command = ''] = COMPILING.exec(recipe) ?? []
  if (!command) throw new Error('The Dockerfile has no RUN that compiles the program')
  await run('sh', ['-ec', MAKE_LAYER, 'sh', base, work, layer, cache, command])
  await writeImageArchive(archive, names, [base, layer], configOf(recipe))
  await rm(work, { recursive: true })
}

/** The Dockerfile's folder for compiled code, and the command that fills it. */
const COMPILING = /^ENV NODE_COMPILE_CACHE=(.*)\nRUN (.*)$/m
/** Runs that command on the base's file system, as the image's user, and packs the program and the command's output. */
const MAKE_LAYER = `
  mkdir "$2/base"; tar -C "$2/base" -xf "$1"; mv "$2/app" "$2/base"; cd "$2/base"
  install -d -o 1000 -g 1000 -m 700 ".$4"
  chroot --userspec=1000:1000 . env "NODE_COMPILE_CACHE=$4" sh -ec "cd /app; $5"
  tar --numeric-owner -cf "$3" app ".$4"`

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
    // Complete or not at all, even if two of these run at once.
    await rename(work, kept).catch(() => rm(work, { recursive: true }))
  }
  return join(kept, 'node_modules')
}

/** The files of the checkout that .dockerignore admits; it has only names of files and folders. */
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
  const of = (word: string) =>
    [...last.matchAll(new RegExp(`^${word} (.*)$`, 'gm'))].map(([, value]) => value).join(' ')
  return {
    User: of('USER'),
    WorkingDir: of('WORKDIR'),
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...of('ENV').split(' ')],
    Cmd: JSON.parse(of('CMD')),
  }
}
