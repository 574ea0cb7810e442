import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KuboNode, startKubo } from './kubo.ts'
import { freePort, type Running, run, until } from './processes.ts'

/** The program of a peer that tests may use, or undefined: `scripts/ci/ipfs-cluster.sh` builds one. */
export const clusterBinary = process.env.BERTH_TEST_IPFS_CLUSTER || undefined

/** A peer of IPFS Cluster and its Kubo, on loopback. */
export interface ClusterPeer {
  /** Address of the REST API, the same after a restart. */
  url: string
  id: string
  kubo: KuboNode
  /** Kills the peer (SIGKILL); its Kubo stays. */
  kill(): Promise<void>
  /** Starts the peer again after `kill`. */
  restart(): Promise<void>
}

export interface TestCluster {
  peers: ClusterPeer[]
  /** Calls the REST API of the first peer. */
  api(method: string, path: string): Promise<{ status: number; text: string }>
  /** Waits until so many peers can take pins. */
  untilReady(count: number): Promise<void>
  stop(): Promise<void>
}

/** Where all Kubos of tests listen, as a filter of Kubo. */
const LOOPBACK = '/ip4/127.0.0.1/ipcidr/32'

/** Starts peers with CRDT consensus, each with a Kubo. The Kubos know nothing of each other, see `connect`. */
export async function startCluster(count: number): Promise<TestCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-cluster-'))
  const secret = randomBytes(32).toString('hex')
  const kubos = await Promise.all(Array.from({ length: count }, () => startKubo()))
  const peers: (ClusterPeer & { address: string })[] = []
  for (const [index, kubo] of kubos.entries())
    peers.push(await startPeer(join(dir, `${index}`), { secret, kubo, bootstrap: peers[0]?.address }))
  const first = peers[0] as ClusterPeer
  const api = async (method: string, path: string) => {
    const response = await fetch(`${first.url}${path}`, { method })
    return { status: response.status, text: await response.text() }
  }
  const untilReady = async (ready: number) => {
    await until(`${ready} peers take pins`, async () => {
      for (const metric of ['freespace', 'tag:group', 'ping']) {
        const found = JSON.parse((await api('GET', `/monitor/metrics/${metric}`)).text) as {
          valid: boolean
        }[]
        if (found.filter(({ valid }) => valid).length !== ready) return false
      }
      return true
    })
  }
  await untilReady(count)
  if (count > 1) await separate(kubos)
  return {
    peers,
    api,
    untilReady,
    async stop() {
      await Promise.all(peers.map((peer) => peer.kill()))
      await Promise.all(kubos.map((kubo) => kubo.stop()))
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/**
 * Ends all connections of Kubos. They refuse new ones until {@link connect}: a peer of IPFS Cluster connects its Kubo to
 * the others some seconds after it joined.
 */
async function separate(kubos: KuboNode[]): Promise<void> {
  for (const kubo of kubos) assert.ok((await post(kubo, `swarm/filters/add?arg=${LOOPBACK}`)).ok)
  await until('no Kubo is connected to another', async () => {
    const connections = await Promise.all(kubos.map(disconnect))
    return connections.every((found) => found === 0)
  })
}

const post = (kubo: KuboNode, command: string) =>
  fetch(`${kubo.apiUrl}/api/v0/${command}`, { method: 'POST' })

/** Connects two Kubos, again after a restart. */
export async function connect(kubo: KuboNode, other: KuboNode): Promise<void> {
  for (const one of [kubo, other]) await post(one, `swarm/filters/rm?arg=${LOOPBACK}`)
  await post(kubo, `swarm/peering/add?arg=${other.multiaddr}`)
}

/** Ends the connections of a Kubo. @returns how many it had. */
async function disconnect(kubo: KuboNode): Promise<number> {
  const { Peers } = (await (await post(kubo, 'swarm/peers')).json()) as { Peers: { Peer: string }[] | null }
  for (const { Peer } of Peers ?? []) await post(kubo, `swarm/disconnect?arg=/p2p/${Peer}`)
  return Peers?.length ?? 0
}

async function startPeer(
  dir: string,
  { secret, kubo, bootstrap }: { secret: string; kubo: KuboNode; bootstrap: string | undefined },
): Promise<ClusterPeer & { address: string }> {
  if (!clusterBinary) throw new Error('BERTH_TEST_IPFS_CLUSTER is not set: see scripts/ci/ipfs-cluster.sh')
  const program = clusterBinary
  const env = { ...process.env, IPFS_CLUSTER_PATH: dir }
  const init = run(program, ['init', '--consensus', 'crdt', '--datastore', 'leveldb'], { env })
  await new Promise((resolve) => init.process.once('close', resolve))
  const [port, swarm] = [await freePort(), await freePort()]
  const path = join(dir, 'service.json')
  const config = JSON.parse(readFileSync(path, 'utf8'))
  Object.assign(config.cluster, {
    secret,
    listen_multiaddress: [`/ip4/127.0.0.1/tcp/${swarm}`],
    mdns_interval: '0s',
    monitor_ping_interval: '1s',
    peer_watch_interval: '1s',
  })
  config.cluster.pubsub.heartbeat_interval = '1s'
  config.consensus.crdt.trusted_peers = ['*']
  config.consensus.crdt.rebroadcast_interval = '1s'
  config.api = { restapi: { ...config.api.restapi, http_listen_multiaddress: `/ip4/127.0.0.1/tcp/${port}` } }
  config.ipfs_connector.ipfshttp.node_multiaddress = `/ip4/127.0.0.1/tcp/${new URL(kubo.apiUrl).port}`
  config.ipfs_connector.ipfshttp.connect_swarms_delay = '24h'
  config.monitor.pubsubmon.check_interval = '1s'
  config.informer.disk.metric_ttl = '2s'
  config.informer.tags.metric_ttl = '2s'
  writeFileSync(path, JSON.stringify(config))
  const { id } = JSON.parse(readFileSync(join(dir, 'identity.json'), 'utf8'))
  const url = `http://127.0.0.1:${port}`
  const start = async () => {
    const daemon = run(program, ['daemon', ...(bootstrap ? ['--bootstrap', bootstrap] : [])], { env })
    await until(`a peer of IPFS Cluster answers: ${dir}`, async () => {
      if (daemon.process.exitCode !== null) throw new Error(daemon.output().slice(-4000))
      return (await fetch(`${url}/id`)).ok
    })
    return daemon
  }
  let daemon: Running = await start()
  return {
    url,
    id,
    kubo,
    address: `/ip4/127.0.0.1/tcp/${swarm}/p2p/${id}`,
    kill: () => daemon.end('SIGKILL'),
    restart: async () => {
      daemon = await start()
    },
  }
}
