import type { QueryKey } from '@tanstack/react-query'
import { useState } from 'react'
import { usePages } from '../../../../api/pages.ts'
import { bytes, shorten } from '../../../../parts/format.ts'
import { moveInTree, TREE_ROW } from '../../../../parts/tree-keys.ts'
import { Button, Problem } from '../../../../parts/ui.tsx'
import { texts } from '../../../../texts.ts'

const words = texts.files.preview

export interface Entry {
  name: string
  cid: string
  /** `unknown` if it was not read. */
  type: 'file' | 'directory' | 'other' | 'unknown'
  size: number | null
}

/** A folder: the names that lead to it, and its CID. */
export interface Place {
  path: string[]
  cid: string
}

/** The source of a tree. It is untrusted: names are shown as text, and a folder is read only when somebody opens it. */
export interface Source {
  key: QueryKey
  read(place: Place, pageToken: string | undefined): Promise<{ items: Entry[]; next: string }>
  /** The URL of a file, if it has one. */
  addressOf?(path: string[]): string
  /** True for a folder with missing parts. */
  isPartial?(place: Place): boolean
}

/** Below this depth folders are no longer indented, for lack of room. */
const DEEPEST = 8
const LONGEST_NAME = 255

/** The entries of a folder. @param opensOnly expands the entry of a folder that has only one */
export function Tree({
  source,
  place,
  label,
  opensOnly = false,
}: {
  source: Source
  place: Place
  label: string
  opensOnly?: boolean
}) {
  const { items, error, hasMore, isReading, readMore } = usePages(
    [...source.key, place.cid, ...place.path],
    (pageToken) => source.read(place, pageToken),
  )
  const depth = place.path.length
  return (
    <div className={depth > 0 && depth <= DEEPEST ? 'ml-3 border-line border-l pl-2' : ''}>
      {!items && !error && <p className="py-1 text-soft text-sm">{texts.loading}</p>}
      <ul aria-label={label} {...(depth === 0 && { onKeyDown: moveInTree })}>
        {items?.map((entry, index) => (
          <Node
            // biome-ignore lint/suspicious/noArrayIndexKey: a folder may contain the same name twice
            key={index}
            source={source}
            place={place}
            entry={entry}
            isFirstOpen={opensOnly && items.length === 1}
          />
        ))}
      </ul>
      {items?.length === 0 && <p className="py-1 text-soft text-sm">{words.nothingIn}</p>}
      {source.isPartial?.(place) && <p className="py-1 text-soft text-sm">{words.partly}</p>}
      <Problem error={error} />
      {hasMore && (
        <Button className="my-1" disabled={isReading} onClick={readMore}>
          {words.more}
        </Button>
      )}
    </div>
  )
}

function Node({
  source,
  place,
  entry: { name, cid, type, size },
  isFirstOpen,
}: {
  source: Source
  place: Place
  entry: Entry
  isFirstOpen: boolean
}) {
  const [isOpen, setOpen] = useState(isFirstOpen && type === 'directory')
  const path = [...place.path, name]
  const shown = <Name name={name} />
  return (
    <li className="text-sm">
      <div className="flex min-h-8 items-center gap-3 rounded-md px-1 hover:bg-tint">
        {type === 'directory' ? (
          <button
            type="button"
            {...TREE_ROW}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            className="flex min-w-0 flex-1 items-baseline gap-2 text-left font-medium hover:text-accent"
          >
            <span
              aria-hidden
              className={`text-soft text-xs motion-safe:transition ${isOpen ? 'rotate-90' : ''}`}
            >
              ▶
            </span>
            {shown}
          </button>
        ) : (
          <span className="min-w-0 flex-1 pl-5">
            {source.addressOf && type === 'file' ? (
              <a
                {...TREE_ROW}
                href={source.addressOf(path)}
                target="_blank"
                rel="noreferrer"
                className="hover:text-accent hover:underline"
              >
                {shown}
              </a>
            ) : (
              <span {...TREE_ROW} tabIndex={-1}>
                {shown}
              </span>
            )}
          </span>
        )}
        {name !== cid && <CopyCid name={name} cid={cid} />}
        <span className="w-20 shrink-0 text-right text-soft text-xs tabular-nums">
          {type === 'unknown' ? words.notRead : size === null ? '' : bytes(size)}
        </span>
      </div>
      {isOpen && <Tree source={source} place={{ path, cid }} label={words.contentsOf(name)} />}
    </li>
  )
}

const Name = ({ name }: { name: string }) => (
  <bdi className="break-all">
    {name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name || texts.files.unnamed}
  </bdi>
)

function CopyCid({ name, cid }: { name: string; cid: string }) {
  const [isDone, setDone] = useState(false)
  return (
    <button
      type="button"
      title={cid}
      onClick={() => void navigator.clipboard.writeText(cid).then(() => setDone(true))}
      className="shrink-0 font-mono text-soft text-xs hover:text-ink max-md:hidden"
    >
      {isDone ? texts.copied : shorten(cid)}
      <span className="sr-only"> {words.copyCid(name)}</span>
    </button>
  )
}
