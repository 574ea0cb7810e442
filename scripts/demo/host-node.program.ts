/**
 * The second IPFS node: `node host-node.program.ts <its folder> <folder to add>`. Serves the folder until it is
 * stopped.
 */
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import type { AddEntry } from '../../src/storage/port.ts'
import { walk } from './folder.ts'

const [dir = '', folder = ''] = process.argv.slice(2)
const { signal } = new AbortController()
// When the demo dies, so does this process.
process.once('disconnect', () => process.exit())

const storage = createEmbeddedStorage({ dir, network: 'public', listen: ['/ip4/127.0.0.1/tcp/0'] })
await storage.start()
const { cid } = await storage.add(entries(folder), { signal })
const { addresses } = await storage.info({ signal })
process.send?.({ cid: cid.toString(), address: addresses[0] })

async function* entries(root: string): AsyncGenerator<AddEntry> {
  for await (const { path } of walk(root)) yield { path, content: createReadStream(join(root, path)) }
}
