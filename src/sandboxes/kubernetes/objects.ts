/** The objects of an agent in a cluster, as they are made. */
import type { V1ConfigMap, V1NetworkPolicy, V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { AGENT_LABEL, labelsOf, nameOf, SPEC_LABEL, VERSION_LABEL } from '../names.ts'
import { hashOf, type SandboxSpec } from '../port.ts'
import { CHECK_LABEL, type PodOptions, podOf, readLabels } from './pod-spec.ts'

/** The agent proxy as policies name it: pods by their labels, or networks. */
export interface ProxyPeers {
  labels: string[]
  namespace: string
  networks: string[]
}

/**
 * The record of a sandbox, which holds the pod that is to run. It owns pod and policy: they go with it.
 * @returns it with the hash of what it was made from.
 */
export function recordOf(
  spec: SandboxSpec,
  instance: string,
  options: PodOptions,
  proxy: ProxyPeers,
): V1ConfigMap {
  const labels = { ...labelsOf(instance, spec.agentId), [VERSION_LABEL]: spec.engineVersion }
  const pod = podOf(spec, options)
  // A connection that was open before its policy changed lives on, so another policy takes another pod.
  const policy = policyOf(spec.agentId, instance, proxy, options.egressUrl)
  const labelled = { ...labels, [SPEC_LABEL]: hashOf({ pod, policy }) }
  return {
    metadata: { name: nameOf(spec.agentId), labels: labelled },
    data: { pod: JSON.stringify({ ...pod, metadata: { name: nameOf(spec.agentId), labels: labelled } }) },
  }
}

/** The owner references of a sandbox's objects. The record does not own the claim, whose data is removed only on request. */
export const ownedBy = ({ metadata }: V1ConfigMap) => [
  // A pod without a controller is one that `kubectl drain` refuses to move.
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    controller: true,
  },
]

/** In only from the agent proxy, and out only to it. */
export function policyOf(
  agentId: string,
  instance: string,
  peers: ProxyPeers,
  egressUrl: string,
): V1NetworkPolicy {
  const labels = labelsOf(instance, agentId)
  const peer = peers.networks.length
    ? peers.networks.map((cidr) => ({ ipBlock: { cidr } }))
    : [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': peers.namespace } },
          podSelector: { matchLabels: readLabels(peers.labels) },
        },
      ]
  const port = (number: number) => [{ protocol: 'TCP', port: number }]
  return {
    metadata: { name: nameOf(agentId), labels },
    spec: {
      podSelector: { matchLabels: { [AGENT_LABEL]: agentId } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ _from: peer, ports: port(AGENTD_PORT) }],
      egress: [{ to: peer, ports: port(Number(new URL(egressUrl).port || 80)) }],
    },
  }
}

/**
 * The policy that shuts the pod of a check off from everything. The pod owns it, and its name has the pod's uid: another pod
 * may take the name of this one.
 */
export const checkPolicyOf = ({ metadata: { name = '', uid = '' } = {} }: V1Pod): V1NetworkPolicy => ({
  metadata: { name: `${name}-${uid}`, ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }] },
  spec: {
    podSelector: { matchLabels: { [CHECK_LABEL]: name } },
    policyTypes: ['Ingress', 'Egress'],
  },
})

/** The claim of an agent's home. It has no owner, so that nothing but its own removal takes the data. */
export function claimOf(
  agentId: string,
  instance: string,
  options: { bytes: number; storageClass?: string | undefined },
): V1PersistentVolumeClaim {
  return {
    metadata: { name: nameOf(agentId), labels: labelsOf(instance, agentId) },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: String(options.bytes) } },
      ...(options.storageClass && { storageClassName: options.storageClass }),
    },
  }
}
