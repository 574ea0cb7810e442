/** Volumes for agents' homes: either Docker's own, or on a disk of the disk helper with a hard limit. */
import type { VolumeInspectInfo } from 'dockerode'
import { ignoreStatus } from '../../openclaw/docker-build.ts'
import { AGENT_LABEL, belongsToOthers, isLabelled, LABELLED, labelsOf, nameOf, ownOf } from '../names.ts'
import type { Owner } from '../owner.ts'
import type { CallOptions } from '../port.ts'
import { type DiskHelper, isOnDisk, mountOf } from './disk-helper.ts'
import { type DockerEngine, SLOW_MS } from './engine.ts'
import { removeHelper } from './home.ts'

export interface VolumeParts {
  engine: DockerEngine
  /** Undefined if new volumes have no hard limit. */
  disks: DiskHelper | undefined
  owner: Owner
}

/**
 * Creates the agent's volume if it does not exist, and sets its limit.
 * @returns whether it has a hard limit. A volume created by Docker before there was a disk helper never gets one.
 * @throws SandboxError
 */
export async function ensureVolume(
  parts: VolumeParts,
  agentId: string,
  { signal, diskBytes }: CallOptions & { diskBytes?: number | undefined },
): Promise<boolean> {
  const { engine, disks, owner } = parts
  const Name = nameOf(agentId)
  const Labels = labelsOf(owner.instance, agentId)
  const before = await findVolume(engine, agentId, signal)
  const place = before && !isOnDisk(before) ? undefined : await disks?.ensure(agentId, diskBytes, signal)
  const found = await engine.call('make volume', { ms: SLOW_MS, signal }, async (docker, abortSignal) => {
    // Docker leaves an existing volume unchanged.
    await docker.createVolume({ Name, Labels, ...(place && { DriverOpts: mountOf(place) }), abortSignal })
    return docker.getVolume(Name).inspect()
  })
  if (!isLabelled(owner, found.Labels)) throw belongsToOthers('volume', Name, found.Labels)
  return isOnDisk(found)
}

/** Removes the agent's volume and its disk, unless they belong to another Berth. @throws SandboxError */
export async function removeVolume(
  { engine, disks, owner }: VolumeParts,
  agentId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const found = await findVolume(engine, agentId, signal)
  if (found && (await ownOf(owner, [found])).length === 0) return
  if (found) {
    await removeHelper(engine, agentId)
    await engine.call('remove volume', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
      docker.getVolume(nameOf(agentId)).remove({ abortSignal }).catch(ignoreStatus(404)),
    )
  }
  if (!found || isOnDisk(found)) await disks?.remove(agentId, signal)
}

/** The agents that have a volume, or a disk without one: the disk comes first and goes last. @throws SandboxError */
export async function listVolumes(
  { engine, disks, owner }: VolumeParts,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  // While the helper is away, agents cannot be started or removed, but can still be listed.
  const onDisk = (await disks?.list(signal).catch(() => [])) ?? []
  const { Volumes } = await engine.call('list volumes', { signal }, (docker, abortSignal) =>
    docker.listVolumes({ filters: LABELLED, abortSignal }),
  )
  const own = await ownOf(owner, Volumes ?? [])
  return [...new Set([...own.flatMap(({ Labels }) => Labels?.[AGENT_LABEL] ?? []), ...onDisk])]
}

const findVolume = (
  engine: DockerEngine,
  agentId: string,
  signal: AbortSignal | undefined,
): Promise<VolumeInspectInfo | undefined> =>
  engine.call('inspect volume', { signal }, (docker, abortSignal) =>
    docker.getVolume(nameOf(agentId)).inspect({ abortSignal }).catch(ignoreStatus(404)),
  )
