/** Builds the pods of an agent, and Berth's own helper pods. */
import type { V1Pod } from '@kubernetes/client-node'
import type { PodTemplate } from '../../kubernetes-settings.ts'
import { engineImageReference } from '../../openclaw/oci/reference.ts'
import { environmentOf, HOME, tmpBytesOf, UID } from '../in-image.ts'
import { nameOf } from '../names.ts'
import type { SandboxSpec } from '../port.ts'
import { GUARD } from './guard.ts'

const STOP_SECONDS = 10
/** The volume's root may contain folders of its file system. */
const HOME_FOLDER = 'home'
/** Limit and reservation for what the container writes outside its volumes, which is its log. */
const SCRATCH = { limit: '256Mi', request: '16Mi' }
/** Label of the pod that checks whether the network is closed. */
export const CHECK_LABEL = 'berth.check'
/** Name of agentd's container; the guard runs before it. */
export const AGENT = 'agent'
/**
 * Kubernetes has no field for these limits. The rest is the ENTRYPOINT of engine images: agentd is JavaScript in images
 * of `berth engines build`, TypeScript in Docker's.
 */
const COMMAND = [
  '/bin/sh',
  '-c',
  'ulimit -c 0; ulimit -f "$1"; for main in /opt/agentd/main.js /opt/agentd/main.ts; do [ -e "$main" ] && exec tini -- node --max-semi-space-size=1 "$main"; done',
  'sh',
]

/** Cluster-wide settings of agents' pods. */
export interface PodOptions {
  /** BERTH_ENGINE_IMAGE. */
  image: string
  template: PodTemplate
  requestPercent: number
  /** URL of the agent proxy's egress for agents. */
  egressUrl: string
  /** Lets agents start although no NetworkPolicy is enforced. */
  openNetwork: boolean
  /** How long the network may take to enforce a policy. */
  guardSeconds: number
}

/** The pod of an agent. Its names are those in the record. */
export function podOf(spec: SandboxSpec, options: PodOptions): V1Pod {
  const { agentId, engineVersion } = spec
  const image = engineImageReference(options.image, engineVersion)
  const env = environmentOf(spec, { proxy: options.egressUrl })
  return {
    spec: {
      ...placement(options),
      hostname: spec.hostname,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: STOP_SECONDS,
      // Names resolve at the egress proxy; nothing responds at this address.
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['127.0.0.1'],
        options: [
          { name: 'timeout', value: '1' },
          { name: 'attempts', value: '1' },
        ],
      },
      initContainers: [guardContainer(image, options)],
      containers: [
        {
          name: AGENT,
          image,
          imagePullPolicy: 'IfNotPresent',
          command: [...COMMAND, String(Math.ceil(spec.agentd.diskBytes / 512))],
          env: Object.entries(env).map(([name, value]) => ({ name, value })),
          workingDir: HOME,
          securityContext: WALLS,
          resources: resources(spec, options),
          volumeMounts: [
            { name: 'home', mountPath: HOME, subPath: HOME_FOLDER },
            { name: 'tmp', mountPath: '/tmp' },
          ],
        },
      ],
      volumes: [
        { name: 'home', persistentVolumeClaim: { claimName: nameOf(agentId) } },
        { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: String(tmpBytesOf(spec.limits)) } },
      ],
    },
  }
}

/** An idle pod that holds an agent's home while it is read or written. */
export function homePod(agentId: string, image: string, options: PodOptions & { node?: string }): V1Pod {
  return {
    metadata: { name: `${nameOf(agentId)}-home` },
    spec: {
      ...placement(options),
      ...(options.node && { nodeName: options.node }),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      initContainers: [guardContainer(image, { ...options, openNetwork: true })],
      containers: [
        {
          ...small(AGENT, image),
          command: ['sleep', 'infinity'],
          volumeMounts: [{ name: 'home', mountPath: HOME, subPath: HOME_FOLDER }],
        },
      ],
      volumes: [{ name: 'home', persistentVolumeClaim: { claimName: nameOf(agentId) } }],
    },
  }
}

const WALLS = {
  allowPrivilegeEscalation: false,
  privileged: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  runAsUser: UID,
  runAsGroup: UID,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

/** The placement and account shared by all pods of agents. */
function placement({ template }: PodOptions) {
  return {
    ...template,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { fsGroup: UID, fsGroupChangePolicy: 'OnRootMismatch' },
  }
}

/** Creates the agent's home, as the agent, and waits until the network is closed. */
const guardContainer = (image: string, { openNetwork, guardSeconds }: PodOptions) => ({
  ...small('guard', image),
  command: ['node', '-e', GUARD],
  env: [
    { name: 'GUARD_FOLDER', value: `/volume/${HOME_FOLDER}` },
    { name: 'GUARD_SECONDS', value: openNetwork ? '0' : String(guardSeconds) },
  ],
  volumeMounts: [{ name: 'home', mountPath: '/volume' }],
})

/** A container for Berth's own programs, isolated like agents. */
const small = (name: string, image: string) => ({
  name,
  image,
  imagePullPolicy: 'IfNotPresent',
  securityContext: WALLS,
  resources: { limits: { memory: '128Mi', cpu: '1' }, requests: { memory: '32Mi', cpu: '10m' } },
})

/** A pod that checks whether it can reach what it must not. */
export function checkPod(name: string, image: string, options: PodOptions): V1Pod {
  return {
    metadata: { name, labels: { [CHECK_LABEL]: name } },
    spec: {
      ...placement(options),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          ...small(AGENT, image),
          command: ['node', '-e', GUARD],
          env: [{ name: 'GUARD_SECONDS', value: String(options.guardSeconds) }],
        },
      ],
    },
  }
}

function resources({ limits }: SandboxSpec, { requestPercent }: PodOptions) {
  const share = (amount: number) => Math.ceil((amount * requestPercent) / 100)
  const cpus = Math.round(limits.cpus * 1000)
  return {
    limits: { memory: String(limits.memoryBytes), cpu: `${cpus}m`, 'ephemeral-storage': SCRATCH.limit },
    requests: {
      memory: String(share(limits.memoryBytes)),
      cpu: `${share(cpus)}m`,
      'ephemeral-storage': SCRATCH.request,
    },
  }
}
