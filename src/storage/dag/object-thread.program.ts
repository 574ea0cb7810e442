import { parentPort } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import { readLinks } from './codecs.ts'

/** The concatenated CIDs, and the length of each in bytes; or why the block cannot be decoded. */
export type ObjectLinks = { cids: Uint8Array; lengths: Uint32Array } | { error: string }

parentPort?.on('message', (asked: { cid: Uint8Array; bytes: Uint8Array }) => {
  parentPort?.postMessage(answer(CID.decode(asked.cid), asked.bytes))
})

function answer(cid: CID, bytes: Uint8Array): ObjectLinks {
  try {
    const links = new Map(readLinks(cid, bytes).links.map((link) => [`${link}`, link.bytes]))
    const all = [...links.values()]
    return { cids: Buffer.concat(all), lengths: Uint32Array.from(all, ({ length }) => length) }
  } catch (error) {
    return { error: (error as Error).message }
  }
}
