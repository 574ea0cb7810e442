/** Docker for tests: whether it can be used, and how to remove what they created. */
import Docker from 'dockerode'

export const docker = new Docker()

/** The base image from which tests build engine images; `scripts/ci/base-image.sh` builds it. */
export const BASE_IMAGE = process.env.BERTH_BASE_IMAGE || 'berth-base:bookworm'

/** True if a Docker engine answers and has the base image. */
export async function dockerAnswers(): Promise<boolean> {
  try {
    const abortSignal = AbortSignal.timeout(5000)
    const found = await docker.listImages({ filters: { reference: [BASE_IMAGE] }, abortSignal })
    return found.length > 0
  } catch {
    return false
  }
}

/** Removes all containers, networks and volumes with a label (`name` or `name=value`), running or not. */
export async function removeLabelled(label: string): Promise<void> {
  const filters = { label: [label] }
  for (const { Id } of await docker.listContainers({ all: true, filters }))
    await docker.getContainer(Id).remove({ force: true, v: true })
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove()
  const { Volumes } = await docker.listVolumes({ filters })
  for (const { Name } of Volumes ?? []) await docker.getVolume(Name).remove({ force: true })
}
