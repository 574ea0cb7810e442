/**
 * `npm run demo`: the main job of Berth on real content, from the request to the last byte.
 *
 * Berth and a second IPFS node start on this machine. The second node gets a folder of some thousand files; the demo
 * asks Berth over HTTP to pin the folder's CID, and Berth fetches it from there. Then the second node is stopped, and
 * what Berth has stored is compared with the folder, byte by byte.
 *
 * Nothing has to be installed. `npm run demo -- --real` does the same with Berth on Kubo, Redis and PostgreSQL of this
 * machine. The demo stops everything that it starts and removes all data, even on Ctrl-C.
 */
import { join } from 'node:path'
import { type Berth, startBerth } from './demo/berth.ts'
import { compareFolder, openStored } from './demo/compare.ts'
import { type Folder, makeFolder, NODE_MODULES } from './demo/folder.ts'
import { startHostNode } from './demo/host-node.ts'
import { PinProgress } from './demo/progress.ts'
import { type Demo, runDemo } from './demo/run.ts'
import { bytes, count } from './demo/screen.ts'

const LIMIT_MS = 10 * 60_000
const FOLDER = { source: NODE_MODULES, files: 2000, bytes: 60_000_000 }

await runDemo({ title: 'Berth pins a folder by its CID', limitMs: LIMIT_MS }, demo)

async function demo({ screen, stack, signal, temp, parts }: Demo): Promise<void> {
  const started = performance.now()
  const folder = await screen.step('Folder', async () => {
    const folder = await makeFolder(join(temp, 'folder'), FOLDER)
    return [folder, describe(folder)]
  })
  screen.detail(`copied from node_modules, ${folder.first} to ${folder.last}`)

  const berth = await screen.step('Berth', async () => {
    const berth = await startBerth({ dataDir: join(temp, 'berth'), parts, stack, signal })
    return [berth, berth.url]
  })
  screen.detail(parts ? 'on those parts' : 'on its own PostgreSQL, queue and IPFS node')
  const hostNode = await screen.step('Second node', async () => {
    const node = await startHostNode({ dir: join(temp, 'second-node'), folder: folder.path, stack, signal })
    return [node, 'has the folder']
  })
  screen.detail(hostNode.cid)

  await pinOver({ screen, signal }, berth, hostNode.cid, hostNode.address)

  await screen.step('Second node', async () => {
    await hostNode.stop()
    return [undefined, 'stopped: what Berth has now is its own']
  })
  const compared = await screen.step('Comparison', async (live) => {
    const stored = await openStored(join(temp, 'berth'), parts, stack)
    const result = await compareFolder({ folder, cid: hostNode.cid, stored, live, signal })
    return [result, `${count(result.files, 'file')}, ${bytes(result.bytes)}: every byte is the same`]
  })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  screen.summary(`${count(compared.files, 'file')} pinned by CID and compared in ${seconds} s.`)
}

/** Asks Berth for the pin and shows its operation's events until it has ended. */
async function pinOver(
  { screen, signal }: Pick<Demo, 'screen' | 'signal'>,
  berth: Berth,
  cid: string,
  hostNode: string,
): Promise<void> {
  const pin = await screen.step('Request', async () => {
    const pin = await berth.pinByCid({ cid, name: 'demo', host_nodes: [hostNode] }, signal)
    return [pin, `POST /v3/files/public/pin_by_cid: ${pin.status}`]
  })
  screen.detail(`followed by GET /v0/operations/${pin.operationId}/events`)
  await screen.step('Pin', async (live) => {
    const progress = new PinProgress()
    live(() => progress.line())
    for await (const operation of berth.follow(pin.operationId, signal)) progress.update(operation)
    return [undefined, progress.summary()]
  })
  await screen.step('File', async () => {
    const file = await berth.file(pin.id, signal)
    return [undefined, describe(file)]
  })
  screen.detail(`GET /v3/files/public/${pin.id}`)
}

function describe({ files, size }: Pick<Folder, 'files' | 'size'>): string {
  return `${count(files, 'file')}, ${bytes(size)}`
}
