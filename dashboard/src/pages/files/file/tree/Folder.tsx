import { api, unwrap } from '../../../../api/client.ts'
import { texts } from '../../../../texts.ts'
import type { FileRecord, Network } from '../../files.ts'
import { type Entry, type Source, Tree } from './Tree.tsx'

const PAGE = 100

/** The tree of a folder in the workspace. @param address the URL of the folder, if it is public */
export function Folder({
  file: { id, cid, name },
  network,
  address,
}: {
  file: FileRecord
  network: Network
  address: string | undefined
}) {
  const source: Source = {
    key: ['entries', network, id],
    async read({ path }, pageToken) {
      const query = { path: path.join('/'), limit: PAGE, ...(pageToken && { pageToken }) }
      const params = { path: { network, id }, query: query as never }
      const { data } = await unwrap(api.GET('/v0/files/{network}/{id}/entries', { params }))
      return { items: data.entries.map(withPath), next: data.next_page_token }
    },
    ...(address && {
      addressOf: (path: string[]) => [address, ...path.map(encodeURIComponent)].join('/'),
    }),
  }
  return (
    <Tree source={source} place={{ path: [], cid }} label={texts.files.preview.contentsOf(name ?? cid)} />
  )
}

/** Marks entries that no path can reach: names that are empty or contain a slash. */
const withPath = (entry: Entry): Entry =>
  entry.name === '' || entry.name.includes('/') ? { ...entry, type: 'other' } : entry
