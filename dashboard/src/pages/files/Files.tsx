import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { cidIn } from '../../parts/cid.ts'
import { useMayChange } from '../../parts/rights.tsx'
import { useTyped } from '../../parts/typed.ts'
import { Button, Empty, Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { BulkBar } from './BulkBar.tsx'
import { FileList } from './FileList.tsx'
import { type Network, useGroups } from './files.ts'
import { NetworkSwitch } from './NetworkSwitch.tsx'
import { UploadArea } from './upload/UploadArea.tsx'

/** Enough for many screens, and few enough to load fast. */
const PAGE = 500

/** The filters of the list, in the URL. */
export interface FileSearch {
  network?: Network
  name?: string
  group?: string
  type?: string
  order?: 'ASC'
}

/** The files of a network, with ways to find, add, group and remove them. */
export function Files() {
  const search = useSearch({ from: '/shell/dashboard/files/' })
  const { network = 'public', name, group, type, order = 'DESC' } = search
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const navigate = useNavigate({ from: '/dashboard/files' })
  const mayChange = useMayChange()
  const set = (changes: FileSearch) => {
    setSelected(new Set())
    // Start from the latest search: a choice made a moment ago may not be rendered yet.
    void navigate({ search: (before: FileSearch) => ({ ...before, ...changes }), replace: true })
  }
  const cid = name && cidIn(name)
  const clear = () => set({ name: undefined, group: undefined, type: undefined })
  const list = useInfiniteQuery({
    queryKey: ['files', network, name, group, type, order],
    initialPageParam: '',
    queryFn: ({ pageParam: pageToken }) => {
      const query = {
        ...{ limit: PAGE, order },
        ...(cid ? { cid } : name && { name }),
        ...(group && { group }),
        ...(type && { mimeType: type }),
        ...(pageToken && { pageToken }),
      }
      return unwrap(api.GET('/v3/files/{network}', { params: { path: { network }, query } }))
    },
    getNextPageParam: ({ data }) => data.next_page_token || undefined,
    placeholderData: (before) => before,
  })
  const files = list.data?.pages.flatMap(({ data }) => data.files) ?? []
  const isFiltered = Boolean(name || group || type)
  const isEmpty = list.data !== undefined && files.length === 0 && !isFiltered
  const chosen = files.filter(({ id }) => selected.has(id))
  return (
    <>
      {mayChange && (
        <UploadArea
          network={network}
          groupId={group && group !== 'null' ? group : undefined}
          isLarge={isEmpty}
        />
      )}
      <Filters search={search} onChange={set} />
      <Problem error={list.error} />
      {!list.data && !list.error && <Loading />}
      {isEmpty && !mayChange && <Empty title={texts.files.empty} />}
      {list.data && files.length === 0 && isFiltered && (
        <Empty title={texts.files.nothing} hint={texts.files.nothingHint}>
          <Button onClick={clear}>{texts.clearFilters}</Button>
        </Empty>
      )}
      {chosen.length > 0 && (
        <BulkBar files={chosen} network={network} onDone={() => setSelected(new Set())} />
      )}
      {files.length > 0 && (
        <FileList
          files={files}
          network={network}
          selected={selected}
          onSelect={setSelected}
          order={order}
          onOrder={() => set({ order: order === 'DESC' ? 'ASC' : undefined })}
          isMore={list.hasNextPage}
          onMore={() => void (list.isFetching || list.fetchNextPage())}
        />
      )}
    </>
  )
}

function Filters({ search, onChange }: { search: FileSearch; onChange: (changes: FileSearch) => void }) {
  const { network = 'public', name = '', group = '', type = '' } = search
  const { groups } = useGroups(network)
  const [typed, setTyped] = useTyped(name, (name) => onChange({ name: name || undefined }))
  const box = 'min-w-0 rounded-lg border border-line bg-card px-3 py-2 text-sm'
  return (
    <div className="my-4 flex flex-wrap gap-2">
      <NetworkSwitch network={network} onChange={(network) => onChange({ network, group: undefined })} />
      <input
        type="search"
        aria-label={texts.files.search}
        placeholder={texts.files.search}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        className={`${box} w-full placeholder:text-soft lg:w-auto lg:flex-1`}
      />
      <select
        aria-label={texts.files.group}
        value={group}
        onChange={(event) => onChange({ group: event.target.value || undefined })}
        className={`${box} flex-1 md:max-w-48 md:flex-none`}
      >
        <option value="">{texts.files.allGroups}</option>
        <option value="null">{texts.files.noGroup}</option>
        {groups.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label={texts.files.type}
        value={type}
        onChange={(event) => onChange({ type: event.target.value || undefined })}
        className={`${box} flex-1 md:flex-none`}
      >
        <option value="">{texts.files.allTypes}</option>
        {Object.entries(texts.files.types).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  )
}
