/** An IPFS node on loopback whose content Berth is asked to pin; it runs in the test's own process. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import { readLinks } from '../../src/storage/dag/codecs.ts'
import { BlockFolder } from '../../src/storage/embedded/blocks.ts'
import { importFiles } from '../../src/storage/embedded/import.ts'
import { startNetwork } from '../../src/storage/embedded/network.ts'

export interface Provider {
  /** The multiaddr to name as host node: on loopback, with the peer's id. */
  readonly multiaddr: string
  readonly peerId: string
  /** Its blocks are in `blocks` below this folder. */
  readonly dir: string
  /** Adds a file (`unixfs-v1-2025`: leaves of 1 MiB) and returns its root. */
  file(content: Uint8Array): Promise<CID>
  /** Adds a folder of files by path. */
  folder(files: Record<string, Uint8Array>): Promise<CID>
  /** Adds one block unchanged, dag-pb unless given; it need not decode. */
  block(bytes: Uint8Array, codec?: number): Promise<CID>
  /** The links of the block, in order. */
  links(cid: CID): Promise<CID[]>
  /**
   * Holds a block back until the returned function is called. Bitswap serves one peer's wants one after the other, so
   * nothing else leaves this provider until then: use a separate provider for each such test.
   */
  hold(cid: CID): () => void
  /**
   * Loses the first request for a block: it is never answered, and neither is anything after it on the connection.
   * Resolves when that has happened.
   */
  lose(cid: CID): Promise<void>
  /** Delays each block that is sent by this time. */
  pace(ms: number): void
  stop(): Promise<void>
}

/** Starts a provider on a free port of 127.0.0.1, with a new empty folder. */
export async function startProvider(): Promise<Provider> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-provider-'))
  const blocks = new HeldBlocks(dir, { touchAfterMs: Number.POSITIVE_INFINITY })
  await blocks.open()
  const network = await startNetwork(blocks, {
    listen: ['/ip4/127.0.0.1/tcp/0'],
    privateKey: null,
    allowPrivate: true,
  })
  const [multiaddr] = network.addresses()
  if (!multiaddr) throw new Error('the provider has no address')
  const add = async (files: Record<string, Uint8Array>) => {
    const { cid } = await importFiles(entries(files), blocks, { signal: new AbortController().signal })
    return cid
  }
  return {
    multiaddr,
    peerId: network.peerId,
    dir,
    file: (content) => add({ file: content }),
    folder: (files) => add(Object.fromEntries(Object.entries(files).map(([path, it]) => [`/${path}`, it]))),
    async block(bytes, codec = dagPb.code) {
      const cid = CID.createV1(codec, await sha256.digest(bytes))
      await blocks.write(cid, bytes)
      return cid
    },
    async links(cid) {
      const bytes = await blocks.read(cid)
      return bytes ? readLinks(cid, bytes).links : []
    },
    hold: (cid) => blocks.hold(cid),
    lose: (cid) => blocks.lose(cid),
    pace: (ms) => {
      blocks.paceMs = ms
    },
    async stop() {
      blocks.releaseAll()
      await network.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function* entries(files: Record<string, Uint8Array>) {
  for (const [path, content] of Object.entries(files)) {
    yield {
      path,
      content: (async function* () {
        yield content
      })(),
    }
  }
}

/** The driver's folder of blocks, some of which can be held back from readers. */
class HeldBlocks extends BlockFolder {
  paceMs = 0
  readonly #gates = new Map<string, { open: Promise<void>; release: () => void }>()
  readonly #toLose = new Map<string, () => void>()

  async open(): Promise<void> {
    for (const dir of [this.dir, this.tempDir]) await mkdir(dir, { recursive: true })
  }

  hold(cid: CID): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gates.set(cid.toString(), { open: promise, release: resolve })
    return resolve
  }

  lose(cid: CID): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#toLose.set(cid.toString(), resolve)
    return promise
  }

  releaseAll(): void {
    for (const { release } of this.#gates.values()) release()
  }

  override async read(cid: CID): Promise<Uint8Array | null> {
    if (this.paceMs > 0) await delay(this.paceMs)
    const lose = this.#toLose.get(cid.toString())
    if (lose) {
      this.#toLose.delete(cid.toString())
      lose()
      await new Promise(() => {})
    }
    await this.#gates.get(cid.toString())?.open
    return super.read(cid)
  }
}
