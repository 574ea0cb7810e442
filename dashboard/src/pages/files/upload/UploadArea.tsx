import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { hasFiles } from '../../../parts/drops.ts'
import { bytes } from '../../../parts/format.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { Network } from '../files.ts'
import { type Chosen, readDrop, readInput } from './dropped.ts'
import { useTake } from './take.ts'
import { UploadList } from './UploadList.tsx'

const words = texts.files.upload

/** Accepts dropped or chosen files and folders, and shows what the plan allows. */
export function UploadArea({
  network,
  groupId,
  isLarge,
}: {
  network: Network
  groupId: string | undefined
  /** True if the page shows nothing else. */
  isLarge: boolean
}) {
  const { take, error, setError, limits } = useTake({ network, groupId })
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

/** Handles drops anywhere on the page. @returns whether something is being dragged over it */
function useDrop(onDrop: (transfer: DataTransfer) => unknown) {
  const [isOver, setOver] = useState(false)
  const latest = useRef(onDrop)
  useEffect(() => {
    latest.current = onDrop
  })
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(true)
    }
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false)
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(false)
      latest.current(event.dataTransfer)
    }
    document.addEventListener('dragover', over)
    document.addEventListener('dragleave', leave)
    document.addEventListener('drop', drop)
    return () => {
      document.removeEventListener('dragover', over)
      document.removeEventListener('dragleave', leave)
      document.removeEventListener('drop', drop)
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
