import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import { bytes, shorten } from '../../../parts/format.ts'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Bar } from '../Bar.tsx'
import { dismiss, isActive, pause, resume, type UploadView, useUploads } from './uploads.ts'

const words = texts.files.upload
/** How many uploads the list shows. For the rest it shows only their number. */
const SHOWN = 8

/** The uploads, with progress and actions. */
export function UploadList() {
  const uploads = useUploads()
  const queries = useQueryClient()
  const ended = uploads.filter(({ state }) => state === 'done').length
  useEffect(() => {
    if (ended > 0) void queries.invalidateQueries()
  }, [ended, queries])
  if (uploads.length === 0) return null
  const underWay = uploads.filter(isActive)
  const isPaused = underWay.every(({ state }) => state === 'paused')
  const clear = () => {
    for (const { key } of uploads) dismiss(key)
  }
  const shown = [...uploads.filter(({ state }) => state === 'failed'), ...underWay, ...uploads]
  return (
    <section aria-label={words.list} className="rounded-xl border border-line bg-card">
      <header className="flex flex-wrap items-center gap-2 border-line border-b px-4 py-2.5 text-sm">
        <p className="mr-auto font-medium" role="status">
          {underWay.length > 0 ? words.underWay(ended, uploads.length) : words.ended(ended, uploads.length)}
        </p>
        {underWay.length > 1 && (
          <Button
            onClick={() => {
              for (const { key } of underWay) (isPaused ? resume : pause)(key)
            }}
          >
            {isPaused ? words.resumeAll : words.pauseAll}
          </Button>
        )}
        {underWay.length === 0 && <Button onClick={clear}>{words.clear}</Button>}
      </header>
      <ul className="divide-y divide-line">
        {[...new Set(shown)].slice(0, SHOWN).map((upload) => (
          <Row key={upload.key} upload={upload} />
        ))}
      </ul>
      {uploads.length > SHOWN && (
        <p className="border-line border-t px-4 py-2 text-soft text-xs">
          {words.more(uploads.length - SHOWN)}
        </p>
      )}
    </section>
  )
}

function Row({ upload }: { upload: UploadView }) {
  const { key, name, state, share, cid, error, fileId, network, files, isFolder } = upload
  const again = state === 'failed' ? words.retry : words.resume
  return (
    <li className="px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className="w-full min-w-0 md:w-auto md:flex-1">
          <p className="truncate font-medium">{name}</p>
          <p className="flex flex-wrap gap-x-2 text-soft text-xs">
            <span>{isFolder ? `${words.filesIn(files)}, ${bytes(upload.bytes)}` : bytes(upload.bytes)}</span>
            {cid && <code title={cid}>{shorten(cid)}</code>}
          </p>
        </div>
        <span
          className={`mr-auto tabular-nums ${state === 'failed' ? 'text-bad' : state === 'done' ? 'text-good' : 'text-soft'}`}
        >
          {words.states[state]}
          {(state === 'packing' || state === 'sending') && ` ${Math.floor(share * 100)} %`}
        </span>
        {fileId && (
          <Link
            to="/dashboard/files/$network/$fileId"
            params={{ network, fileId }}
            className="font-medium text-accent hover:underline"
          >
            {words.show}
          </Link>
        )}
        {(state === 'sending' || state === 'packing' || state === 'waiting') && (
          <Button aria-label={`${words.pause} ${name}`} onClick={() => pause(key)}>
            {words.pause}
          </Button>
        )}
        {(state === 'paused' || state === 'failed' || state === 'offline') && (
          <Button aria-label={`${again} ${name}`} onClick={() => resume(key)}>
            {again}
          </Button>
        )}
        {state !== 'done' && (
          <Button aria-label={`${texts.cancel} ${name}`} onClick={() => dismiss(key)}>
            {texts.cancel}
          </Button>
        )}
      </div>
      {isActive(upload) && <Bar label={words.progressOf(name)} value={share} className="mt-2 block w-full" />}
      {error && (
        <p role="alert" className="mt-1.5 break-words text-bad text-xs">
          {error.message}
        </p>
      )}
    </li>
  )
}
