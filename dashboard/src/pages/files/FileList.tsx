import { Link } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useRef } from 'react'
import { Id } from '../../parts/copy.tsx'
import { bytes, shorten } from '../../parts/format.ts'
import { Time } from '../../parts/time.tsx'
import { texts } from '../../texts.ts'
import type { FileRecord, Network } from './files.ts'
import { Cell, Group, Head, Row } from './grid.tsx'

const ROW_PX = 56
const AHEAD = 12
/** The next page is loaded when fewer rows than this are left. */
const EARLY = 100
const COLUMNS =
  'grid grid-cols-[2.5rem_minmax(0,1fr)_5rem] items-center lg:grid-cols-[2.5rem_minmax(0,1fr)_12rem_6rem_9rem] xl:grid-cols-[2.5rem_minmax(0,1fr)_10rem_12rem_6rem_9rem]'
const { columns } = texts.files

/** A list of any number of files. Only visible rows are in the page. */
export function FileList({
  files,
  network,
  selected,
  onSelect,
  order,
  onOrder,
  isMore,
  onMore,
}: {
  files: FileRecord[]
  network: Network
  selected: ReadonlySet<string>
  onSelect: (ids: ReadonlySet<string>) => void
  order: 'ASC' | 'DESC'
  onOrder: () => void
  isMore: boolean
  onMore: () => void
}) {
  const body = useRef<HTMLDivElement>(null)
  const rows = useWindowVirtualizer({
    count: files.length,
    estimateSize: () => ROW_PX,
    overscan: AHEAD,
    scrollMargin: body.current?.offsetTop ?? 0,
  })
  const items = rows.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (isMore && last > files.length - EARLY) onMore()
  })
  const toggle = useCallback(
    (id: string) => {
      const ids = new Set(selected)
      if (!ids.delete(id)) ids.add(id)
      onSelect(ids)
    },
    [selected, onSelect],
  )
  const isAll = files.every(({ id }) => selected.has(id))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot leave out the rows that are not visible
    <div
      role="table"
      aria-label={texts.files.title}
      aria-rowcount={isMore ? -1 : files.length + 1}
      className="overflow-clip rounded-xl border border-line bg-card text-sm"
    >
      <Group className="bg-card md:sticky md:top-0 md:z-5">
        <Row index={1} className={`${COLUMNS} border-line border-b py-2.5 text-soft`}>
          <Head>
            <Check
              label={texts.files.selectAll}
              isOn={isAll}
              onChange={() => onSelect(new Set(isAll ? [] : files.map(({ id }) => id)))}
            />
          </Head>
          <Head>{columns.name}</Head>
          <Head className="hidden xl:block">{columns.type}</Head>
          <Head className="hidden lg:block">{columns.cid}</Head>
          <Head className="pr-4 text-right">{columns.size}</Head>
          <Head className="hidden lg:block" sort={order === 'DESC' ? 'descending' : 'ascending'}>
            <button type="button" onClick={onOrder} className="hover:text-ink">
              {columns.added} <span aria-hidden>{order === 'DESC' ? '↓' : '↑'}</span>
            </button>
          </Head>
        </Row>
      </Group>
      {/* The script sets heights and positions, which a policy without inline styles allows. */}
      <Group innerRef={body} height={rows.getTotalSize()}>
        {items.map(({ index, start }) => {
          const file = files[index]
          if (!file) return null
          return (
            <Row
              key={file.id}
              index={index + 2}
              top={start - rows.options.scrollMargin}
              className={`${COLUMNS} h-14 border-line border-b hover:bg-page ${selected.has(file.id) ? 'bg-tint' : ''}`}
            >
              <FileCells file={file} network={network} isOn={selected.has(file.id)} onToggle={toggle} />
            </Row>
          )
        })}
      </Group>
    </div>
  )
}

/** Memoized, so that scrolling does not render unchanged cells again. */
const FileCells = memo(function FileCells({
  file: { id, name, cid, size, created_at, mime_type, keyvalues },
  network,
  isOn,
  onToggle,
}: {
  file: FileRecord
  network: Network
  isOn: boolean
  onToggle: (id: string) => void
}) {
  const title = name ?? texts.files.unnamed
  const pairs = Object.entries(keyvalues)
  return (
    <>
      <Cell>
        <Check label={texts.files.select(title)} isOn={isOn} onChange={() => onToggle(id)} />
      </Cell>
      <Cell className="min-w-0 pr-3">
        <Link
          to="/dashboard/files/$network/$fileId"
          params={{ network, fileId: id }}
          className={`block truncate font-medium hover:text-accent ${name === null ? 'text-soft' : ''}`}
        >
          {title}
        </Link>
        {pairs.length > 0 && (
          <span className="block truncate text-soft text-xs">
            {pairs.map(([key, value]) => `${key}: ${value}`).join(' · ')}
          </span>
        )}
      </Cell>
      <Cell className="hidden truncate pr-3 text-soft xl:block">
        {texts.files.types[mime_type] ?? mime_type}
      </Cell>
      <Cell className="hidden lg:block">
        <Id text={cid} shown={shorten(cid)} />
      </Cell>
      <Cell className="whitespace-nowrap pr-4 text-right tabular-nums">{bytes(size)}</Cell>
      <Cell className="hidden whitespace-nowrap text-soft lg:block">
        <Time at={created_at} />
      </Cell>
    </>
  )
})

function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: () => void }) {
  return (
    <input
      type="checkbox"
      aria-label={label}
      checked={isOn}
      onChange={onChange}
      className="mx-3 block size-4 accent-accent"
    />
  )
}
