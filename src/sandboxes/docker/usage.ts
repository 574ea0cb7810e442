/** Disk space of one Berth in Docker. */
import { type ImageSize, imageBytes } from '../../openclaw/image.ts'
import { LABELLED, ownOf } from '../names.ts'
import type { Owner } from '../owner.ts'
import { DockerEngine } from './engine.ts'

interface Held {
  count: number
  bytes: number
}

export interface DockerUsage {
  /** Bytes that they have written outside their volumes. */
  containers: Held
  volumes: Held
  networks: number
  /** Engine images, which all Berths on the engine share. */
  images: Held
  /** The build cache of the whole Docker daemon, which does not record whose build it was. */
  buildCache: Held
}

/** Docker measures volumes file by file. */
const MEASURE_MS = 120_000

interface SystemDf {
  Containers?: { Labels?: Record<string, string>; SizeRw?: number }[] | null
  Volumes?: { Labels?: Record<string, string>; UsageData?: { Size: number } | null }[] | null
  Images?: ImageSize[] | null
  BuildCache?: { Size: number; Shared: boolean }[] | null
}

/** Asks Docker for its disk usage. It takes longer the more files agents have. @throws SandboxError */
export async function dockerUsage(host: string | undefined, owner: Owner): Promise<DockerUsage> {
  const engine = new DockerEngine(host)
  const df: SystemDf = await engine.call('measure', { ms: MEASURE_MS }, (docker) => docker.df())
  const networks = await engine.call('list networks', {}, (docker, abortSignal) =>
    docker.listNetworks({ filters: LABELLED, abortSignal }),
  )
  const containers = await ownOf(owner, df.Containers ?? [])
  const volumes = await ownOf(owner, df.Volumes ?? [])
  return {
    containers: held(containers.map(({ SizeRw = 0 }) => SizeRw)),
    // -1 if it was not measured.
    volumes: held(volumes.map(({ UsageData }) => Math.max(UsageData?.Size ?? 0, 0))),
    networks: (await ownOf(owner, networks)).length,
    images: imageBytes(df.Images ?? []),
    // Layers that images share are counted with the images.
    buildCache: held((df.BuildCache ?? []).filter(({ Shared }) => !Shared).map(({ Size }) => Size)),
  }
}

/** The usage as one readable line. */
export function formatUsage({ containers, volumes, networks, images, buildCache }: DockerUsage): string {
  const parts = [
    `${containers.count} containers (${megabytes(containers)})`,
    `${volumes.count} volumes (${megabytes(volumes)})`,
    `${networks} networks`,
    `${images.count} engine images (${megabytes(images)})`,
  ]
  return `${parts.join(', ')}; whole build cache ${megabytes(buildCache)}`
}

const held = (sizes: number[]): Held => ({
  count: sizes.length,
  bytes: sizes.reduce((sum, one) => sum + one, 0),
})

const megabytes = ({ bytes }: Held) => `${Math.round(bytes / 1_000_000)} MB`
