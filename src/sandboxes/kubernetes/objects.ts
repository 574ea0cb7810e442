/** Builds the objects of an agent in a cluster. */
import type { V1ConfigMap, V1NetworkPolicy, V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { AGENT_LABEL, labelsOf, nameOf, SPEC_LABEL, VERSION_LABEL } from '../names.ts'
import { hashOf, type SandboxSpec } from '../port.ts'
import { CHECK_LABEL, type PodOptions, podOf } from './pod-spec.ts'

/** The agent proxy in policies: pods by their labels, or networks. */
export interface ProxyPeers {
  labels: Record<string, string>
  namespace: string
  networks: string[]
}

/**
 * The record of a sandbox, which contains the pod to run. It owns the pod and the policy, so they are deleted with it.
 * @returns the record, with the hash of its inputs.
 */
export function recordOf(
  spec: SandboxSpec,
  instance: string,
  options: PodOptions,
  proxy: ProxyPeers,
): V1ConfigMap {
  const labels = { ...labelsOf(instance, spec.agentId), [VERSION_LABEL]: spec.engineVersion }
  const pod = podOf(spec, options)
  // Open connections survive a change of their policy, so a changed policy requires a new pod.
  const policy = policyOf(spec.agentId, instance, proxy, options.egressUrl)
  const labelled = { ...labels, [SPEC_LABEL]: hashOf({ pod, policy }) }
  return {
    metadata: { name: nameOf(spec.agentId), labels: labelled },
    data: { pod: JSON.stringify({ ...pod, metadata: { name: nameOf(spec.agentId), labels: labelled } }) },
  }
}

/**
 * The owner references of a sandbox's objects. The record does not own the claim, whose data is removed only on
 * request.
 */
export const ownedBy = ({ metadata }: V1ConfigMap) => [
  // `kubectl drain` refuses to move a pod without a controller.
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    controller: true,
  },
]

/** Allows traffic only from and to the agent proxy. */
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
          podSelector: { matchLabels: peers.labels },
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
 * The policy that isolates the pod of a check completely. The pod owns it, and its name contains the pod's uid, because
 * another pod may reuse this pod's name.
 */
export const checkPolicyOf = ({ metadata: { name = '', uid = '' } = {} }: V1Pod): V1NetworkPolicy => ({
  metadata: { name: `${name}-${uid}`, ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }] },
  spec: {
    podSelector: { matchLabels: { [CHECK_LABEL]: name } },
    policyTypes: ['Ingress', 'Egress'],
  },
})

/** The claim of an agent's home. It has no owner, so that its data is deleted only with the claim itself. */
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
