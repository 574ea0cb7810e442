import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { bytes } from '../../../parts/format.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { Network } from '../files.ts'
import { type Chosen, readDrop, readInput } from './dropped.ts'
import { UploadList } from './UploadList.tsx'
import { add } from './uploads.ts'

const words = texts.files.upload

/** Takes files and folders, by drop or by choice; says before what the plan allows. */
export function UploadArea({
  network,
  groupId,
  isLarge,
}: {
  network: Network
  groupId: string | undefined
  /** Where there is nothing else to see. */
  isLarge: boolean
}) {
  const me = useQuery({ queryKey: ['me'], queryFn: () => unwrap(api.GET('/v0/me')) })
  const usage = useQuery({ queryKey: ['usage'], queryFn: () => unwrap(api.GET('/v3/usage')) })
  const [error, setError] = useState<Error | null>(null)
  const limits = usage.data?.data
  const workspaceId = me.data?.data.workspace.id
  const take = (chosen: Chosen[]) => {
    if (!workspaceId) return
    const problem = refusal(chosen, limits)
    setError(problem ? new Error(problem) : null)
    if (!problem) add(chosen, { network, groupId, workspaceId })
  }
  const isOver = useDrop((transfer) => readDrop(transfer).then(take, setError))
  return (
    <div className="space-y-3">
      <section
        aria-label={words.title}
        className={`flex flex-wrap items-center gap-x-4 gap-y-3 rounded-xl border-2 border-dashed motion-safe:transition ${isOver ? 'border-accent bg-tint' : 'border-line'} ${isLarge ? 'flex-col px-6 py-10' : 'px-4 py-3'}`}
      >
        <Icon name="upload" className={isLarge ? 'size-7 text-accent' : 'size-5 text-soft max-md:hidden'} />
        {isLarge ? (
          <div className="text-center">
            <p className="font-medium">{texts.files.empty}</p>
            <p className="mt-1 text-soft text-sm">{words.drop(texts.files[network])}</p>
          </div>
        ) : (
          <p className="font-medium text-sm">{words.drop(texts.files[network])}</p>
        )}
        <div className={`flex flex-wrap gap-2 ${isLarge ? 'justify-center' : 'md:order-last md:ml-auto'}`}>
          <Choose onChosen={take}>{words.files}</Choose>
          <Choose isFolder onChosen={take}>
            {words.folder}
          </Choose>
        </div>
        {limits && (
          <p className="text-soft text-xs">
            {limits.max_file_bytes !== null && `${words.largest(bytes(limits.max_file_bytes))} · `}
            {limits.limit_bytes === null
              ? words.used(bytes(limits.bytes))
              : words.usedOf(bytes(limits.bytes), bytes(limits.limit_bytes))}
          </p>
        )}
      </section>
      <Problem error={error} />
      <UploadList />
    </div>
  )
}

interface Limits {
  bytes: number
  limit_bytes: number | null
  max_file_bytes: number | null
}

/** Why the plan would refuse what was chosen. */
function refusal(chosen: Chosen[], limits: Limits | undefined): string | undefined {
  if (!chosen.length) return undefined
  const sizes = chosen.map(({ files }) => files.reduce((sum, { file }) => sum + file.size, 0))
  const empty = chosen.find(({ files }) => files.length === 0)
  if (empty) return words.emptyFolder(empty.name)
  if (!limits) return undefined
  const { limit_bytes, max_file_bytes } = limits
  const large = chosen[sizes.findIndex((size) => max_file_bytes !== null && size > max_file_bytes)]
  if (large && max_file_bytes !== null) return words.tooLarge(large.name, bytes(max_file_bytes))
  const all = sizes.reduce((sum, size) => sum + size, 0)
  const left = limit_bytes === null ? Number.POSITIVE_INFINITY : limit_bytes - limits.bytes
  return all > left ? words.noRoom(bytes(all), bytes(Math.max(left, 0))) : undefined
}

/** Takes what is dropped anywhere on the page. @returns whether something is held above it. */
function useDrop(onDrop: (transfer: DataTransfer) => unknown) {
  const [isOver, setOver] = useState(false)
  const latest = useRef(onDrop)
  useEffect(() => {
    latest.current = onDrop
  })
  useEffect(() => {
    // Otherwise the browser opens the file in place of the page.
    const over = (event: DragEvent) => {
      event.preventDefault()
      setOver(event.dataTransfer?.types.includes('Files') ?? false)
    }
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false)
    const drop = (event: DragEvent) => {
      event.preventDefault()
      setOver(false)
      if (event.dataTransfer?.types.includes('Files')) latest.current(event.dataTransfer)
    }
    addEventListener('dragover', over)
    addEventListener('dragleave', leave)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('dragleave', leave)
      removeEventListener('drop', drop)
    }
  }, [])
  return isOver
}

function Choose({
  isFolder = false,
  onChosen,
  children,
}: {
  isFolder?: boolean
  onChosen: (chosen: Chosen[]) => void
  children: ReactNode
}) {
  const id = useId()
  const ref = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (ref.current) ref.current.webkitdirectory = isFolder
  }, [isFolder])
  return (
    <label
      htmlFor={id}
      className="inline-flex min-h-9 cursor-pointer items-center rounded-lg border border-line bg-card px-3.5 py-1.5 font-medium text-sm focus-within:outline-2 focus-within:outline-accent focus-within:outline-offset-2 hover:border-accent"
    >
      <input
        ref={ref}
        id={id}
        type="file"
        multiple
        className="sr-only"
        onChange={({ target }) => {
          onChosen(readInput(target.files ?? new DataTransfer().files))
          target.value = ''
        }}
      />
      {children}
    </label>
  )
}
