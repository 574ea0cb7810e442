/** The real SDK, with recorded calls, on the tests' own workspace and gateway. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { GetCIDResponse, PinataSDK, UploadResponse } from 'pinata'
import type { Client } from '../../support/client.ts'
import type { Provider } from '../../support/provider.ts'
import { createSdk, reachGateway } from '../../support/sdk.ts'
import { type Watch, watch } from '../../support/watch.ts'
import type { Context } from '../context.ts'

export const NETWORKS = ['public', 'private'] as const
export type Network = (typeof NETWORKS)[number]

export interface Sdk extends Watch<PinataSDK> {
  /** The same without recording calls: for what a test needs as a precondition. */
  plain: PinataSDK
  /** An SDK without a key; its calls are recorded as well. */
  keyless: PinataSDK
  /** Host name of the workspace's gateway. */
  gateway: string
  /** The same API without the SDK. */
  api: Client
  /** A node with content that Berth does not have. */
  node: Provider
  /** Reads a CID at the gateway: on the private network through a signed link. */
  read(network: Network, cid: string): Promise<Buffer>
  /** A new file of 1,000 random bytes. */
  upload(network: Network, name?: string): Promise<UploadResponse>
}

export async function openSdk(context: Context): Promise<Sdk> {
  const { url } = context
  const { api } = await context.workspace()
  const { status, body } = await api.get('/v3/gateways')
  assert.equal(status, 200, JSON.stringify(body))
  const gateway: string = body.data.rows[0].host
  reachGateway({ url, gateway })
  const plain = createSdk({ url, key: api.key, gateway })
  const watching = watch(plain)
  return {
    ...watching,
    plain,
    keyless: watch(createSdk({ url, gateway }), watching.called).watched,
    gateway,
    api,
    node: await context.provider(),
    read: async (network, cid) => bytesOf(await watching.watched.gateways[network].get(cid)),
    upload: async (network, name = 'random.bin') =>
      await plain.upload[network].file(fileOf(randomBytes(1000), name)),
  }
}

export const fileOf = (bytes: Buffer<ArrayBuffer>, name = 'random.bin') => new File([bytes], name)
/** `text/plain`, which the SDK returns as a string. */
export const textFile = (text: string, name = 'a.txt') => new File([text], name, { type: 'text/plain' })

/** The SDK parses content by its type. */
export async function bytesOf({ data }: GetCIDResponse): Promise<Buffer> {
  if (data instanceof Blob) return Buffer.from(await data.arrayBuffer())
  return Buffer.from(typeof data === 'string' ? data : JSON.stringify(data))
}
