/** Reads what a cluster reports about a sandbox. */
import type { V1ConfigMap, V1ContainerStatus, V1Pod } from '@kubernetes/client-node'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { SandboxError } from '../../errors.ts'
import { AGENT_LABEL, SPEC_LABEL, VERSION_LABEL } from '../names.ts'
import type { Sandbox } from '../port.ts'
import { OPEN_NETWORK } from './guard.ts'
import { AGENT } from './pod-spec.ts'

/** Annotation on the record of a started sandbox: how its last run ended, as far as it has. */
const LAST_RUN = 'berth.last-run'
/** Annotation on a record: the uid of the pod whose network was found closed while the API server was up. */
const SHUT_POD = 'berth.shut-pod'

/** The part of a sandbox that outlives its pod. */
type Run = Pick<Sandbox, 'exitCode' | 'oomKilled' | 'startedAt'>

const NOTHING_KNOWN: Run = { exitCode: null, oomKilled: false, startedAt: null }

const POD_DELETED = 'its pod was deleted, by a drain of its node for example'

export const isEnded = (pod: V1Pod) => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'

/** True for a pod that was created from the current record. */
export const isOf = (pod: V1Pod, record: V1ConfigMap) =>
  pod.metadata?.labels?.[SPEC_LABEL] === record.metadata?.labels?.[SPEC_LABEL] &&
  pod.metadata?.ownerReferences?.[0]?.uid === record.metadata?.uid

const agentOf = (pod: V1Pod): V1ContainerStatus | undefined =>
  pod.status?.containerStatuses?.find(({ name }) => name === AGENT)

/** The course of a pod's run so far. */
export function runOf(pod: V1Pod): Run {
  const { terminated, running } = agentOf(pod)?.state ?? {}
  return {
    exitCode: terminated?.exitCode ?? null,
    oomKilled: terminated?.reason === 'OOMKilled',
    startedAt: toText(terminated?.startedAt ?? running?.startedAt),
  }
}

/** The error for an agent that exited during its start. */
export function endOf(pod: V1Pod): SandboxError {
  const { exitCode, oomKilled } = runOf(pod)
  if (!oomKilled)
    return new SandboxError('internal', `the agent exited during startup: exit code ${exitCode}`)
  const { resources } = pod.spec?.containers.find(({ name }) => name === AGENT) ?? {}
  const limit = `${Math.round(Number(resources?.limits?.memory) / 1_048_576)} MiB`
  const message = `out of memory: the kernel killed its container during startup, the agent's limit is ${limit}`
  return new SandboxError('out_of_memory', message)
}

/** A watch returns times as text, a call returns dates. */
const toText = (time: Date | string | undefined) => (time ? new Date(time).toISOString() : null)

/** True for a sandbox that was started since its record was created. */
export const wasStarted = (record: V1ConfigMap) => lastRun(record) !== undefined

/** The record with its last run noted. */
export const withRun = (record: V1ConfigMap, run: Run | object) =>
  annotated(record, { [LAST_RUN]: JSON.stringify(run) })

/** The record with a note that this pod's network is closed. */
export const withShut = (record: V1ConfigMap, { metadata }: V1Pod) =>
  annotated(record, { [SHUT_POD]: metadata?.uid ?? '' })

/** True for a pod noted by {@link withShut}. */
export const isShut = (record: V1ConfigMap, { metadata }: V1Pod) =>
  record.metadata?.annotations?.[SHUT_POD] === metadata?.uid

const annotated = (record: V1ConfigMap, annotations: Record<string, string>): V1ConfigMap => ({
  ...record,
  metadata: { ...record.metadata, annotations: { ...record.metadata?.annotations, ...annotations } },
})

function lastRun({ metadata }: V1ConfigMap): Run | undefined {
  const note = metadata?.annotations?.[LAST_RUN]
  return note === undefined ? undefined : { ...NOTHING_KNOWN, ...JSON.parse(note) }
}

/** True while the agent's own container runs and has an address. */
export const isRunning = (pod: V1Pod): boolean =>
  Boolean(agentOf(pod)?.state?.running && pod.status?.podIP) && !isEnded(pod)

export function toSandbox(record: V1ConfigMap, found: V1Pod | undefined): Sandbox {
  const { [AGENT_LABEL]: agentId = '', [VERSION_LABEL]: engineVersion = '' } = record.metadata?.labels ?? {}
  const pod = found && isOf(found, record) ? found : undefined
  const none = { agentId, engineVersion, address: null, ...NOTHING_KNOWN }
  if (!pod) {
    const run = lastRun(record)
    if (!run) return { ...none, state: 'created' }
    return { ...none, ...run, state: 'exited', ...(run.exitCode === null && { cause: POD_DELETED }) }
  }
  if (isEnded(pod)) {
    const { reason, message } = pod.status ?? {}
    return { ...none, ...runOf(pod), state: 'exited', ...(reason && { cause: `${reason}: ${message}` }) }
  }
  if (!isRunning(pod)) return { ...none, state: 'created' }
  const address = `${pod.status?.podIP}:${AGENTD_PORT}`
  return { ...none, ...runOf(pod), state: 'running', address }
}

const BAD_IMAGE = ['ImagePullBackOff', 'ErrImageNeverPull', 'InvalidImageName']
const BAD_CONTAINER = ['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']

/** Why a pod will certainly not run; undefined while it still may. */
export function obstacleTo(pod: V1Pod): SandboxError | undefined {
  const { initContainerStatuses = [], containerStatuses = [], reason } = pod.status ?? {}
  for (const { state, image } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason = '', message } = state?.waiting ?? {}
    if (BAD_IMAGE.includes(reason))
      return new SandboxError('no_image', `the image ${image} cannot be pulled: ${message ?? reason}`)
    if (BAD_CONTAINER.includes(reason)) return new SandboxError('internal', message ?? reason)
  }
  // An agent that exited by itself is not an obstacle: its state shows how it ended.
  if (!isEnded(pod) || agentOf(pod)?.state?.terminated || reason) return undefined
  const guard = initContainerStatuses[0]?.state?.terminated
  if (guard?.exitCode === OPEN_NETWORK) return openNetwork()
  return new SandboxError('internal', `the agent's home cannot be prepared: ${guard?.reason ?? 'unknown'}`)
}

export const openNetwork = () =>
  new SandboxError('internal', 'the network of the cluster does not enforce its NetworkPolicy')

/** The reason why a pod does not run, in the cluster's words. */
export function whatIsMissing(pod: V1Pod | undefined): SandboxError {
  const unplaced = pod?.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  )
  if (unplaced)
    return new SandboxError('no_room', `no node of the cluster accepts the agent: ${unplaced.message}`)
  const waits = [...(pod?.status?.initContainerStatuses ?? []), ...(pod?.status?.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting?.message ?? state?.waiting?.reason)
    .find(Boolean)
  const text = waits ?? pod?.status?.message ?? `its pod is ${pod?.status?.phase ?? 'gone'}`
  return new SandboxError('unreachable', `the agent's node has not started it yet: ${text}`)
}
