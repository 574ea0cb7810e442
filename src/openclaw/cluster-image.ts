/**
 * Engine images for clusters, built without Docker: layers with the engine and agentd on an existing base. The same
 * content has the same digests, whatever machine builds it.
 */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiledFolder } from '../../agentd/compiled.ts'
import { SandboxError } from '../errors.ts'
import { removeLeftovers, temporaryName } from '../lib/files.ts'
import { withLock } from '../lib/process/file-lock.ts'
import { enginesLock, installLocked, isComplete, requireEngineVersion } from './install.ts'
import { nodeObstacle, readNodeRange } from './node-range.ts'
import { readArchive, writeArchive } from './oci/archive.ts'
import { type Architecture, type Image, type ImageConfig, type PackedImage, packImage } from './oci/image.ts'
import { type Entry, entriesOf, type Layer, makeLayer, namesIn, takeLayer } from './oci/layer.ts'
import { parseReference } from './oci/reference.ts'
import { Registry } from './oci/registry.ts'

const AGENTD = fileURLToPath(new URL('../../agentd', import.meta.url))
/** Required contents of the base: these programs in one of the folders below, the user `node`, and certificates. */
const TOOLS = ['node', 'bash', 'curl', 'git', 'tini']
const PROGRAMS = ['usr/local/bin', 'usr/bin', 'bin', 'usr/local/sbin', 'usr/sbin', 'sbin']
const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt'
/** npm's processor names, by the names that images use. */
const CPUS: Record<string, string> = { amd64: 'x64', arm64: 'arm64' }

export interface ClusterImageOptions {
  version: string
  /** A name in a registry, or the path of an archive if it begins with `/` or `.` or ends in `.tar`. */
  baseImage: string
  /** Folder of installed engine versions. The image is built there and needs space as well. */
  enginesDir: string
  architecture: Architecture
  /** The image's name. */
  name: string
  /** Pushes the image to the registry in its name, or writes it to an archive at this path. */
  to: 'registry' | { archive: string }
  /** Receives progress, line by line. */
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * Builds the image of a version and writes it. @returns its digest.
 * @throws SandboxError
 */
export async function buildClusterImage(options: ClusterImageOptions): Promise<string> {
  const { version, enginesDir, name, to, onLine, signal } = options
  requireEngineVersion(version)
  const place = parseReference(name)
  await mkdir(enginesDir, { recursive: true })
  return withLock(enginesLock(enginesDir), options, async () => {
    const draft = join(enginesDir, '.image')
    // Drafts of dead processes: only one process holds the lock, so no draft is in use.
    await removeLeftovers(draft, 0)
    const dir = temporaryName(draft)
    await mkdir(dir)
    try {
      const image = await build(dir, options)
      onLine?.(`Writing ${to === 'registry' ? name : to.archive}`)
      if (to === 'registry') return await new Registry(place, signal).push(place.tag, image)
      await writeArchive(to.archive, image, name)
      return image.manifest.descriptor.digest
    } finally {
      await rm(dir, { recursive: true, force: true, maxRetries: 5 })
    }
  })
}

async function build(dir: string, options: ClusterImageOptions): Promise<PackedImage> {
  const { version, baseImage, enginesDir, architecture, onLine, signal } = options
  const cpu = CPUS[architecture]
  if (!cpu) throw new SandboxError('internal', `the engine does not run on linux/${architecture}`)
  onLine?.(`Reading ${baseImage}`)
  const base = await readBase(dir, options)
  const tini = await checkBase(base, baseImage)
  const platform = { os: 'linux', cpu, libc: 'glibc' as const }
  const engine = await installLocked({ version, dir: enginesDir, platform, onLine, signal })
  const range = await readNodeRange(engine)
  const obstacle = nodeObstacle(version, { range, node: nodeOf(base) })
  if (obstacle) throw new SandboxError('no_image', `${obstacle} in ${baseImage}`)
  if (!(await isComplete(engine)))
    throw new SandboxError(
      'no_image',
      `OpenClaw ${version} needs Node ${range}, even to install, and Berth runs on Node ${process.versions.node}`,
    )
  signal?.throwIfAborted()
  onLine?.('Packing the engine and agentd')
  const layers = [await makeLayer(dir, engineEntries(engine)), await makeLayer(dir, agentdEntries())]
  signal?.throwIfAborted()
  return packImage(dir, {
    config: configOf(base.config, layers, version, tini),
    layers: [...base.layers, ...layers.map(({ blob }) => blob)],
  })
}

async function readBase(dir: string, options: ClusterImageOptions): Promise<Image> {
  const { baseImage, architecture, signal } = options
  const isArchive = /^[./]|\.tar$/.test(baseImage)
  const reference = isArchive ? undefined : parseReference(baseImage)
  const { config, layers } = reference
    ? await new Registry(reference, signal).pull(reference.tag, architecture, dir)
    : await readArchive(baseImage, architecture, dir)
  if (config.os !== 'linux' || config.architecture !== architecture)
    throw new SandboxError('no_image', `${baseImage} is for ${config.os}/${config.architecture}`)
  const taken: Image['layers'] = []
  for (const layer of layers) taken.push(await takeLayer(dir, layer))
  return { config, layers: taken }
}

/**
 * Checks the base, because nothing can be installed into it here. @returns the path of tini in it. @throws SandboxError
 */
async function checkBase({ config, layers }: Image, name: string): Promise<string> {
  const found = new Set<string>()
  for (const layer of layers) for await (const entry of namesIn(layer)) found.add(entry)
  const places = TOOLS.map((tool) => PROGRAMS.map((dir) => `${dir}/${tool}`).find((path) => found.has(path)))
  const missing = TOOLS.filter((_, i) => places[i] === undefined)
  if (!found.has(CERTIFICATES)) missing.push('ca-certificates')
  if (!found.has('home/node')) missing.push('the user node')
  if (missing.length > 0)
    throw new SandboxError(
      'no_image',
      `${name} lacks ${missing.join(', ')}, which nothing here can install: docs/kubernetes.md, "Images"`,
    )
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(nodeOf({ config }) ?? '') ?? []
  if (major !== undefined && (Number(major) < 24 || (major === '24' && Number(minor) < 16)))
    throw new SandboxError('no_image', `${name} has Node ${major}.${minor}, older than 24.16`)
  return `/${places[TOOLS.indexOf('tini')]}`
}

/** The version of Node in an image that declares it, as the official images do. */
const nodeOf = ({ config }: Pick<Image, 'config'>): string | undefined =>
  /^NODE_VERSION=v?(.+)$/m.exec(config.config?.Env?.join('\n') ?? '')?.[1]

/** Leaves out npm's lists, which name the registry of the packages, and code compiled for this machine. */
async function* engineEntries(folder: string): AsyncGenerator<Entry> {
  const modules = join(folder, 'node_modules')
  const left = new Set([
    join(folder, 'package-lock.json'),
    join(modules, '.package-lock.json'),
    compiledFolder(folder),
  ])
  yield* entriesOf(folder, 'opt/openclaw', (path) => !left.has(path))
  yield { name: 'usr/local/bin/openclaw', link: '/opt/openclaw/node_modules/openclaw/openclaw.mjs' }
}

/**
 * agentd as JavaScript: Node's type stripper would occupy memory in every agent. Rewrites imports to the new file
 * names.
 */
async function* agentdEntries(): AsyncGenerator<Entry> {
  yield { name: 'opt/agentd' }
  yield { name: 'opt/agentd/package.json', content: Buffer.from('{ "type": "module" }\n') }
  for (const file of (await readdir(AGENTD, { recursive: true, withFileTypes: true }))
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name).slice(AGENTD.length + 1) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const { entry, path } = file
    if (entry.isDirectory()) yield { name: `opt/agentd/${path}` }
    else if (path.endsWith('.ts') && !path.endsWith('.test.ts')) {
      const source = await readFile(join(AGENTD, path), 'utf8')
      const plain = stripTypeScriptTypes(source).replace(/(from '\.[^']*)\.ts'/g, "$1.js'")
      yield { name: `opt/agentd/${path.slice(0, -3)}.js`, content: Buffer.from(plain) }
    } else if (path.startsWith('repository/hooks/'))
      yield {
        name: `opt/agentd/${path}`,
        content: await readFile(join(AGENTD, path)),
        isExecutable: true,
      }
  }
}

/** The image's configuration, the same as in agentd/Dockerfile. */
function configOf(base: ImageConfig, layers: Layer[], version: string, tini: string): ImageConfig {
  const { config, rootfs, history, architecture, os } = base
  const { Cmd: _, Healthcheck: __, Volumes: ___, ...kept } = config ?? {}
  return {
    architecture,
    os,
    created: '1970-01-01T00:00:00Z',
    config: {
      ...kept,
      User: 'node',
      WorkingDir: '/home/node',
      Entrypoint: [tini, '--', 'node', '--max-semi-space-size=1', '/opt/agentd/main.js'],
      Labels: {
        ...(kept.Labels as object | undefined),
        'berth.engine': 'openclaw',
        'berth.engine-version': version,
      },
    },
    rootfs: { type: 'layers', diff_ids: [...rootfs.diff_ids, ...layers.map(({ diffId }) => diffId)] },
    ...(history && {
      history: [...history, ...['openclaw', 'agentd'].map((what) => ({ created_by: `berth: ${what}` }))],
    }),
  }
}
