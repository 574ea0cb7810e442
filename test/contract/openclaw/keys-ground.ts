/** Where brokered secrets are attacked: an HTTPS server under several names, for agents in Docker or in a cluster. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KeysServer, startKeysServer } from '../../support/keys-server.ts'
import { stackKind } from '../../support/stack.ts'

export interface Ground {
  /** The host of the secret, whose certificate is valid. */
  host: string
  /** The same server under names that are not the secret's, on another port, and by its address. */
  elsewhere: { other: string; lookAlike: string; port: string; address: string }
  servers: KeysServer[]
  /** Settings with which agent proxies reach and trust it. */
  env: Record<string, string>
  stop(): Promise<void>
}

/** @param options as of the server. */
export async function openGround(options: { key: string; git: string }): Promise<Ground> {
  const open = stackKind === 'kubernetes' ? inCluster : onMachine
  const { host, elsewhere, servers, close } = await open(options)
  const dir = await mkdtemp(join(tmpdir(), 'berth-keys-'))
  const trusted = join(dir, 'ca.pem')
  await writeFile(trusted, servers.map(({ ca }) => ca).join(''))
  const reached = [`${host}:443`, ...Object.values(elsewhere)]
  return {
    host,
    elsewhere,
    servers,
    env: { BERTH_EGRESS_ALLOW: reached.join(','), NODE_EXTRA_CA_CERTS: trusted },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
      await close?.()
      await rm(dir, { recursive: true })
    },
  }
}

type Opened = Pick<Ground, 'host' | 'elsewhere' | 'servers'> & { close?: () => Promise<void> }

/** On loopback, where every name below `localhost` leads. Port 443 takes root. */
async function onMachine(options: { key: string; git: string }): Promise<Opened> {
  const host = 'keys.localhost'
  const servers = await Promise.all([443, 0].map((port) => startKeysServer({ ...options, host, port })))
  return {
    host,
    elsewhere: {
      other: 'other.localhost:443',
      lookAlike: `${host}.evil.localhost:443`,
      port: `${host}:${servers[1]?.port}`,
      address: '127.0.0.1:443',
    },
    servers,
  }
}

/** On this machine, behind Services: their names resolve in the cluster. */
async function inCluster(options: { key: string; git: string }): Promise<Opened> {
  const { addresses, apply, read, removeNamespace } = await import('../../support/kubernetes.ts')
  const { machine } = await addresses()
  const namespace = `keys-${randomBytes(4).toString('hex')}`
  const nameOf = (service: string) => `${service}.${namespace}.svc.cluster.local`
  const host = nameOf('keys')
  const server = await startKeysServer({ ...options, host, address: machine })
  const service = (name: string) => {
    const metadata = { name, namespace }
    const ports = [443, 8443].map((port) => ({ name: `p${port}`, port, targetPort: server.port }))
    const at = ports.map(({ name }) => ({ name, port: server.port }))
    return [
      { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } },
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata,
        subsets: [{ addresses: [{ ip: machine }], ports: at }],
      },
    ]
  }
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    ...['keys', 'other', 'keys-evil'].flatMap(service),
  )
  return {
    host,
    elsewhere: {
      other: `${nameOf('other')}:443`,
      lookAlike: `${nameOf('keys-evil')}:443`,
      port: `${host}:8443`,
      address: `${await read(namespace, 'service/keys', '.spec.clusterIP')}:443`,
    },
    servers: [server],
    close: () => removeNamespace(namespace).then(() => {}),
  }
}
