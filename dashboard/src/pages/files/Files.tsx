import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Button, Empty, PageHead, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { FileTable } from './FileTable.tsx'
import { PendingPins } from './PendingPins.tsx'
import { PinDialog } from './PinDialog.tsx'
import { Upload } from './Upload.tsx'

export type Network = 'public' | 'private'
const PAGE = 50
const NETWORKS: Network[] = ['public', 'private']

/** The files of a network: found, added and removed. */
export function Files() {
  const [network, setNetwork] = useState<Network>('public')
  const [name, setName] = useState('')
  const [isPinning, setPinning] = useState(false)
  const { data, error, fetchNextPage, hasNextPage } = useInfiniteQuery({
    queryKey: ['files', network, name],
    initialPageParam: '',
    queryFn: ({ pageParam: pageToken }) => {
      const query = { limit: PAGE, ...(name && { name }), ...(pageToken && { pageToken }) }
      return unwrap(api.GET('/v3/files/{network}', { params: { path: { network }, query } }))
    },
    getNextPageParam: ({ data }) => data.next_page_token || undefined,
    placeholderData: (before) => before,
  })
  const files = data?.pages.flatMap(({ data }) => data.files) ?? []
  return (
    <>
      <PageHead title={texts.files.title}>
        {network === 'public' && <Button onClick={() => setPinning(true)}>{texts.files.pin}</Button>}
      </PageHead>
      <Upload network={network} />
      <div className="my-4 flex flex-wrap gap-3">
        <fieldset className="flex rounded-lg border border-line p-1" aria-label={texts.files.network}>
          {NETWORKS.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === network}
              onClick={() => setNetwork(one)}
              className="rounded-md px-3 py-1 text-sm text-soft aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent"
            >
              {texts.files[one]}
            </button>
          ))}
        </fieldset>
        <input
          type="search"
          aria-label={texts.files.search}
          placeholder={texts.files.search}
          value={name}
          onChange={(event) => setName(event.target.value)}
          className="min-w-0 flex-1 rounded-lg border border-line bg-card px-3 py-2 text-sm placeholder:text-soft"
        />
      </div>
      <Problem error={error} />
      {network === 'public' && <PendingPins />}
      {data && files.length === 0 && (
        <Empty
          title={name ? texts.files.nothing : texts.files.empty}
          {...(!name && { hint: texts.files.emptyHint })}
        />
      )}
      {files.length > 0 && <FileTable files={files} network={network} />}
      {hasNextPage && (
        <div className="mt-4 text-center">
          <Button onClick={() => void fetchNextPage()}>{texts.files.older}</Button>
        </div>
      )}
      {isPinning && <PinDialog onClose={() => setPinning(false)} />}
    </>
  )
}
