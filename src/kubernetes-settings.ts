/** The settings of agents in Kubernetes. A part of `agent-settings.ts`. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { flag, integer, text, yaml } from './setting-types.ts'

const name = text.regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a Kubernetes name')

/** A part of a field that the API server checks. */
const object = z.looseObject({})

/** The fields of a pod's spec that an operator may set; no other, because it could open the walls around agents. */
const podTemplate = z.strictObject({
  serviceAccountName: name.default('berth-agent'),
  imagePullSecrets: z.array(z.strictObject({ name })).exactOptional(),
  runtimeClassName: name.exactOptional(),
  nodeSelector: z.record(z.string(), z.string()).exactOptional(),
  tolerations: z
    .array(z.looseObject({ effect: z.enum(['NoSchedule', 'NoExecute', 'PreferNoSchedule']).exactOptional() }))
    .exactOptional(),
  affinity: object.exactOptional(),
  priorityClassName: name.exactOptional(),
  schedulerName: name.exactOptional(),
})

/** The value of BERTH_KUBERNETES_POD. */
export type PodTemplate = z.infer<typeof podTemplate>

const proxyPeers = z.strictObject({
  labels: z
    .record(z.string(), z.string())
    .refine((labels) => Object.keys(labels).length > 0, 'must not be empty')
    .default({ app: 'berth-agent-proxy' }),
  namespace: name.exactOptional(),
  networks: z.array(z.union([z.cidrv4(), z.cidrv6()], 'must be networks like 10.0.0.4/32')).default([]),
})

export const kubernetesSettings = {
  BERTH_KUBERNETES_CONFIG: text
    .transform((path) => resolve(path))
    .optional()
    .describe('Path of the kubeconfig for `worker`. Not set: the service account of its pod.'),
  BERTH_KUBERNETES_NAMESPACE: name
    .default('berth-agents')
    .describe('Namespace for agents, which must contain nothing else.'),
  BERTH_KUBERNETES_STORAGE_CLASS: name
    .optional()
    .describe("StorageClass of agents' volumes. Not set: the cluster's default."),
  BERTH_KUBERNETES_POD: yaml(podTemplate)
    .prefault('')
    .describe(
      "Fields for the spec of agents' pods, as YAML or JSON: `imagePullSecrets`, `serviceAccountName` (by default `berth-agent`, which has no permissions; its token is not mounted), `runtimeClassName` (such as gVisor's), `nodeSelector`, `tolerations`, `affinity`, `priorityClassName`, `schedulerName`.",
    ),
  BERTH_KUBERNETES_REQUEST_PERCENT: integer(1, 100)
    .default(25)
    .describe("The share of an agent's memory and processors that is reserved on its node."),
  BERTH_KUBERNETES_PROXY: yaml(proxyPeers)
    .prefault('')
    .describe(
      "The agent proxy as YAML or JSON; only it can reach agents, and they can reach only it. Name the `labels` of its pods (by default `app: berth-agent-proxy`) and their `namespace` (by default the agents'). For a proxy that is not a pod, or that uses its node's network, instead its `networks`, such as `[10.0.0.4/32]`.",
    ),
  BERTH_KUBERNETES_OPEN_NETWORK: flag
    .default(false)
    .describe(
      "Whether agents start although the cluster's network does not enforce NetworkPolicy: they can then reach everything that a pod can reach.",
    ),
}
