/** The settings of agents in Kubernetes. A part of `agent-settings.ts`. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { flag, integer, list, text } from './setting-types.ts'

const name = text.regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a Kubernetes name')
const labels = list.pipe(
  z.array(text.regex(/^[^=\s]+=[^=\s]*$/, 'must be label=value pairs, comma separated')),
)

export const kubernetesSettings = {
  BERTH_KUBERNETES_CONFIG: text
    .transform((path) => resolve(path))
    .optional()
    .describe('Path of the kubeconfig for `worker`. Not set: the service account of its pod.'),
  BERTH_KUBERNETES_NAMESPACE: name
    .default('berth-agents')
    .describe('Namespace for agents, which must contain nothing else.'),
  BERTH_KUBERNETES_PULL_SECRETS: list
    .default([])
    .describe("Secrets in the agents' namespace with which nodes pull engine images."),
  BERTH_KUBERNETES_ACCOUNT: name
    .default('berth-agent')
    .describe('ServiceAccount of agents, which has no permissions; its token is not mounted.'),
  BERTH_KUBERNETES_STORAGE_CLASS: name
    .optional()
    .describe("StorageClass of agents' volumes. Not set: the cluster's default."),
  BERTH_KUBERNETES_RUNTIME_CLASS: name
    .optional()
    .describe("RuntimeClass of agents, such as gVisor's. Not set: the cluster's default."),
  BERTH_KUBERNETES_NODE_SELECTOR: labels
    .default([])
    .describe('Labels of the nodes on which agents run, as label=value. Not set: any node.'),
  BERTH_KUBERNETES_TOLERATIONS: list
    .pipe(
      z.array(
        text.regex(
          /^[^=:\s]+(=[^:\s]*)?(:(NoSchedule|NoExecute|PreferNoSchedule))?$/,
          'must be taints, comma separated',
        ),
      ),
    )
    .default([])
    .describe('Node taints that agents tolerate, as key, key=value or key=value:effect.'),
  BERTH_KUBERNETES_REQUEST_PERCENT: integer(1, 100)
    .default(25)
    .describe("The share of an agent's memory and processors that is reserved on its node."),
  BERTH_KUBERNETES_PROXY_LABELS: labels
    .default(['app=berth-agent-proxy'])
    .describe(
      "Labels of the agent proxy's pods: only they can reach agents, and agents can reach only them.",
    ),
  BERTH_KUBERNETES_PROXY_NAMESPACE: name
    .optional()
    .describe("Namespace of the agent proxy. Not set: the agents' namespace."),
  BERTH_KUBERNETES_PROXY_NETWORKS: list
    .pipe(z.array(z.union([z.cidrv4(), z.cidrv6()], 'must be networks like 10.0.0.4/32')))
    .default([])
    .describe(
      "Addresses of an agent proxy that is not a pod, or that uses its node's network, instead of its labels.",
    ),
  BERTH_KUBERNETES_OPEN_NETWORK: flag
    .default(false)
    .describe(
      "Whether agents start although the cluster's network does not enforce NetworkPolicy: they can then reach everything that a pod can reach.",
    ),
}
