/**
 * `npm run demo:files`: a day with files, by the official `pinata` SDK against Berth, unchanged.
 *
 * Berth and a second IPFS node start on this machine. Files, a folder, 200 MB and something private are uploaded,
 * listed, grouped, swapped, read through the gateway and deleted, and a folder of the second node is pinned. Everything
 * that is read is compared with the original, byte by byte.
 *
 * Nothing has to be installed. `npm run demo:files -- --real` does the same with Berth on two Kubo nodes, Redis and
 * PostgreSQL of this machine. The demo stops everything that it starts and removes all data, even on Ctrl-C.
 */
import { join } from 'node:path'
import { createSdk, reachGateway } from '../test/support/sdk.ts'
import { startBerth } from './demo/berth.ts'
import { makeLargeFile } from './demo/content.ts'
import { organise } from './demo/files-organise.ts'
import { readBack, remove } from './demo/files-read.ts'
import { upload } from './demo/files-upload.ts'
import { makeFolder, NODE_MODULES, SOURCE_CODE } from './demo/folder.ts'
import { Comparison } from './demo/gateway.ts'
import { startHostNode } from './demo/host-node.ts'
import { type Demo, runDemo } from './demo/run.ts'
import type { Scene } from './demo/scene.ts'
import { bytes, count } from './demo/screen.ts'

const LIMIT_MS = 3 * 60_000
const LARGE_BYTES = 200_000_000
const FOLDER = { source: NODE_MODULES, files: 200, bytes: 8_000_000 }
const PINNED = { source: SOURCE_CODE, files: 100, bytes: 300_000 }

await runDemo({ title: 'Berth and the official pinata SDK', limitMs: LIMIT_MS }, demo)

async function demo({ screen, stack, signal, temp, parts }: Demo): Promise<void> {
  const began = performance.now()
  const path = { folder: join(temp, 'folder'), large: join(temp, 'large.bin'), pinned: join(temp, 'pinned') }
  await screen.step('Content', async (live) => {
    const { files, size } = await makeFolder(path.folder, FOLDER)
    await makeFolder(path.pinned, PINNED)
    let done = 0
    live(() => bytes(done))
    await makeLargeFile(path.large, LARGE_BYTES, (made) => {
      done = made
    })
    return [
      undefined,
      `a folder of ${count(files, 'file')}, ${bytes(size)}, and ${bytes(LARGE_BYTES)} at random`,
    ]
  })
  const berth = await screen.step('Berth', async () => {
    const berth = await startBerth({ dataDir: join(temp, 'berth'), parts, stack, signal })
    return [berth, berth.url]
  })
  screen.detail(parts ? 'on those parts' : 'on its own PostgreSQL, queue and IPFS node')
  const other = await screen.step('Second node', async () => {
    const node = await startHostNode({ dir: join(temp, 'second-node'), folder: path.pinned, stack, signal })
    return [node, 'has another folder']
  })
  const gateway = await berth.gateway(signal)
  const { sent } = reachGateway({ url: berth.url, gateway })
  const sdk = createSdk({ url: berth.url, key: berth.key, gateway })
  const comparison = new Comparison()
  const scene: Scene = { screen, signal, sdk, gateway, sent, comparison, kept: [] }

  await upload(scene, path)
  await organise(scene, other, path.pinned)
  await readBack(scene)
  await remove(scene)

  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  screen.summary(
    `${bytes(comparison.bytes)} read back and compared, every byte the same. ${seconds} s in all.`,
  )
}
