/** `berth engines`: manages the versions of OpenClaw that agents can run, as images or folders. */
import { join } from 'node:path'
import { styleText } from 'node:util'
import { loadConfig } from '../config.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { ConfigError, SandboxError } from '../errors.ts'
import { createLogger } from '../log.ts'
import { buildClusterImage } from '../openclaw/cluster-image.ts'
import { compareVersions, knownVersions, requireEngineVersion } from '../openclaw/install.ts'
import { engineImageReference } from '../openclaw/oci/reference.ts'
import { openRuntime } from '../sandboxes/open.ts'
import { NO_OWNER } from '../sandboxes/owner.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import { withDatabase } from './database.ts'
import { printRows } from './print.ts'

export function listEngines({ json }: { json?: boolean }): Promise<void> {
  return withDatabase(({ pool, prisma, config }) =>
    withRuntime(async (runtime) => {
      const atHand = new Map(
        (await runtime.engines({ sizes: true })).map((engine) => [engine.version, engine]),
      )
      const agents = await countAgents(prisma)
      const versions = new Set([
        ...(await knownVersions(pool, config)).available,
        ...atHand.keys(),
        ...agents.keys(),
      ])
      const rows = [...versions]
        .sort((a, b) => compareVersions(b, a))
        .map((version) => {
          const { bytes, place, obstacle } = atHand.get(version) ?? {}
          const size = bytes && (json ? bytes : `${Math.round(bytes / 1_000_000)} MB`)
          const isDefault = version === config.BERTH_ENGINE_VERSIONS[0]
          return {
            version,
            default: json ? isDefault : isDefault ? 'yes' : null,
            runtime: runtime.driver,
            agents: agents.get(version) ?? 0,
            size: size ?? null,
            place: place ?? (json ? null : 'not built'),
            obstacle: obstacle ?? null,
          }
        })
      printRows(rows, json)
    }),
  )
}

export interface BuildFlags {
  /** Pushes to the registry of BERTH_ENGINE_IMAGE. */
  push?: boolean
  /** Writes an archive. */
  output?: string
  /** Target platform of an image for clusters, such as `linux/amd64`. */
  platform: string
}

/** Builds the image of a version, or installs it, and shows the progress. */
export async function buildEngine(version: string, flags: BuildFlags): Promise<void> {
  requireEngineVersion(version)
  const began = performance.now()
  const seconds = () => ((performance.now() - began) / 1000).toFixed(1).padStart(6)
  const onLine = (line: string) => console.log(`${styleText('dim', `${seconds()} s`)}  ${shorten(line)}`)
  const place =
    flags.push || flags.output !== undefined
      ? await buildForCluster(version, flags, onLine)
      : await withRuntime(async (runtime) => {
          await runtime.prepareEngine(version, { onLine })
          return (await runtime.engines()).find((one) => one.version === version)?.place
        })
  console.log(`${styleText('green', '✔')} ${version} is ready: ${place}`)
}

/** @returns the image's name with its digest. */
async function buildForCluster(
  version: string,
  { output, platform }: BuildFlags,
  onLine: (line: string) => void,
): Promise<string> {
  const config = loadConfig()
  const { BERTH_ENGINE_IMAGE: template, BERTH_BASE_IMAGE: baseImage } = config
  if (!template) throw new ConfigError('BERTH_ENGINE_IMAGE: not set, so the image has no name')
  const name = engineImageReference(template, version)
  const digest = await buildClusterImage({
    version,
    baseImage,
    enginesDir: config.BERTH_ENGINES_DIR ?? join(config.BERTH_DATA_DIR, 'engines'),
    architecture: platform.replace('linux/', ''),
    name,
    to: output === undefined ? 'registry' : { archive: output },
    onLine,
  })
  return `${name}@${digest}`
}

/** @throws SandboxError while agents run the version. */
export function removeEngine(version: string): Promise<void> {
  requireEngineVersion(version)
  return withDatabase(({ prisma }) =>
    withRuntime(async (runtime) => {
      const agents = (await countAgents(prisma)).get(version) ?? 0
      if (agents > 0)
        throw new SandboxError(
          'internal',
          `${agents === 1 ? 'An agent runs' : `${agents} agents run`} ${version}: restart them on another version first`,
        )
      const there = (await runtime.engines()).some((one) => one.version === version)
      await runtime.removeEngine(version)
      console.log(there ? `${version} is removed` : `${version} was not installed`)
    }),
  )
}

async function withRuntime<T>(work: (runtime: SandboxRuntime) => Promise<T>): Promise<T> {
  const runtime = await openRuntime(loadConfig(), createLogger('cli', 'silent'), NO_OWNER)
  try {
    return await work(runtime)
  } finally {
    await runtime.close()
  }
}

/** Agents that still have a sandbox, by version. */
async function countAgents(prisma: PrismaClient): Promise<Map<string, number>> {
  const counts = await prisma.agent.groupBy({
    by: ['engineVersion'],
    where: { purgedAt: null },
    _count: true,
  })
  return new Map(counts.map(({ engineVersion, _count }) => [engineVersion, _count]))
}

/** A step of a Dockerfile may fill a whole screen. */
function shorten(line: string): string {
  const width = (process.stdout.columns ?? 120) - 11
  return line.length > width ? `${line.slice(0, width - 1)}…` : line
}
