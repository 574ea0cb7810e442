import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import {
  type CarTree,
  carEntry,
  listCarFolder,
  NoCarError,
  readCarTree,
} from '../../../../../../src/storage/dag/car-tree.ts'
import { bytes } from '../../../../parts/format.ts'
import { Note } from '../../../../parts/section.tsx'
import { Button, Problem } from '../../../../parts/ui.tsx'
import { texts } from '../../../../texts.ts'
import { fetchBeginning, totalOf } from '../beginning.ts'
import { type Source, Tree } from './Tree.tsx'

const words = texts.files.preview
const PAGE = 100
/** The bytes of a CAR that are read first. Each request for more multiplies the limit by `MORE`. */
const FIRST = 8_388_608
const MORE = 8
const MOST = 536_870_912

interface Read {
  tree: CarTree
  /** The size of the CAR in bytes. */
  total: number
}

/**
 * The tree of a CAR file, from its first bytes, because the file may be larger than a browser can hold. Blocks are
 * verified against their CIDs.
 * @param version changes when a swap changes the content at the CID.
 * @param locate returns the URL of the file.
 */
export function Archive({
  cid,
  name,
  version,
  locate,
}: {
  cid: string
  name: string
  version: string | undefined
  locate: () => Promise<string>
}) {
  const [limit, setLimit] = useState(FIRST)
  const { data, error, isFetching } = useQuery({
    queryKey: ['car', cid, version, limit],
    queryFn: async ({ signal }) => read(await locate(), limit, signal),
    staleTime: 'static',
    gcTime: 0,
    retry: false,
    structuralSharing: false,
    placeholderData: keepPreviousData,
  })
  const source = useMemo(() => data && sourceOf(data.tree, [cid, version]), [data, cid, version])
  if (error) return <Problem error={error} />
  if (!data || !source) return <p className="text-soft text-sm">{texts.loading}</p>
  const { tree, total } = data
  return (
    <>
      {tree.end === 'cut' && (
        <Note
          actions={
            limit < Math.min(total, MOST) && (
              <Button disabled={isFetching} onClick={() => setLimit(limit * MORE)}>
                {isFetching ? texts.loading : words.readOn(bytes(Math.min(limit * MORE, total)))}
              </Button>
            )
          }
        >
          {words.cut(bytes(tree.bytes), bytes(total))}
        </Note>
      )}
      {tree.end === 'broken' && <Note>{words.broken(bytes(tree.bytes))}</Note>}
      {tree.refused > 0 && <Note>{words.refused(tree.refused)}</Note>}
      <Tree
        key={tree.bytes}
        source={source}
        place={{ path: [], cid: '' }}
        label={words.contentsOf(name)}
        opensOnly
      />
    </>
  )
}

/** Reads the beginning of a CAR. @throws RequestError, or Error with a message for the user */
async function read(address: string, limit: number, signal: AbortSignal): Promise<Read> {
  if (!crypto.subtle) throw new Error(texts.files.upload.insecure)
  const answer = await fetchBeginning(address, limit, signal)
  if (!answer?.body) throw new Error(words.noCar)
  const total = totalOf(answer)
  try {
    return { tree: await readCarTree(chunksOf(answer.body), { total, limit }), total }
  } catch (error) {
    throw error instanceof NoCarError ? new Error(words.noCar) : error
  }
}

async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

/** The roots of a CAR, and their contents. */
function sourceOf(tree: CarTree, of: (string | undefined)[]): Source {
  const partial = new Set<string>()
  return {
    key: ['car-tree', ...of, tree.bytes],
    async read({ cid: folder }, pageToken = '0') {
      const offset = Number(pageToken)
      const next = (hasMore: boolean) => (hasMore ? `${offset + PAGE}` : '')
      if (folder === '') {
        const roots = tree.roots.slice(offset, offset + PAGE)
        const items = roots.map((root) => carEntry(tree, root, `${root}`, null))
        return { items, next: next(tree.roots.length > offset + PAGE) }
      }
      const { entries, hasMore, isIncomplete } = listCarFolder(tree, folder, { offset, limit: PAGE })
      if (isIncomplete) partial.add(folder)
      return { items: entries, next: next(hasMore) }
    },
    isPartial: ({ cid: folder }) => partial.has(folder),
  }
}
