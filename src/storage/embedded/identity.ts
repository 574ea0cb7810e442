import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generateKeyPair, privateKeyToProtobuf } from '@libp2p/crypto/keys'
import { ifThere, onDisk } from './disk.ts'

/**
 * The peer's private key (libp2p protobuf) in `<dir>/peer.key`, mode 600, made when it is not there.
 * Processes that start together agree on one.
 */
export async function loadPrivateKey(dir: string): Promise<Uint8Array> {
  const path = join(dir, 'peer.key')
  const existing = await ifThere(() => readFile(path))
  if (existing) return existing
  const temp = join(dir, `tmp/${randomUUID()}`)
  return onDisk(async () => {
    await writeFile(temp, privateKeyToProtobuf(await generateKeyPair('Ed25519')), { mode: 0o600, flag: 'wx' })
    await link(temp, path).catch((error) => {
      if (error.code !== 'EEXIST') throw error
    })
    await rm(temp)
    return readFile(path)
  })
}
