/** Skill folders on Berth's own IPFS nodes. */
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import type { Client } from '../../support/client.ts'
import type { Provider } from '../../support/provider.ts'
import type { Network } from '../stored.ts'
import { file, upload } from '../upload-form.ts'

let last = 0

/** A unique SKILL.md. @param more lines for its front matter. */
export const skillMd = (name = 'a-skill', ...more: string[]): string =>
  [
    '---',
    `name: ${name}`,
    'description: What it is for.',
    ...more,
    '---',
    '',
    `Number ${++last}, ${Date.now()}.`,
  ].join('\n')

/** Uploads a folder; resolves to the file's record. */
export const uploadFolder = (
  api: Client,
  files: Record<string, string>,
  network: Network = 'public',
): Promise<{ id: string; cid: string }> =>
  upload(
    api,
    ['network', network],
    ...Object.entries(files).map(([path, content]) => file(content, `skill/${path}`)),
  )

/** Makes Berth pin a directory that no upload would create; `entries` are in block order. */
export async function pinDirectory(
  api: Client,
  provider: Provider,
  entries: [name: string, cid: CID][],
): Promise<string> {
  const Data = new UnixFS({ type: 'directory' }).marshal()
  const Links = entries.map(([Name, Hash]) => ({ Name, Hash, Tsize: 1 }))
  const cid = await provider.block(dagPb.encode(dagPb.prepare({ Data, Links })))
  const { operation } = await api.pin({ cid: `${cid}`, host_nodes: [provider.multiaddr] })
  const { state, error } = await api.finished(operation)
  if (state !== 'succeeded') throw new Error(`the pin ended as ${state}: ${error}`)
  return `${cid}`
}

/** A UnixFS symbolic link. */
export const symlinkTo = (provider: Provider, target: string): Promise<CID> =>
  provider.block(
    dagPb.encode({ Data: new UnixFS({ type: 'symlink', data: Buffer.from(target) }).marshal(), Links: [] }),
  )
