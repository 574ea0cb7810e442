import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { RequestError } from '../../api/client.ts'
import { Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Network } from './Files.tsx'

/** Takes files by drop or by choice, and sends them one after the other. */
export function Upload({ network }: { network: Network }) {
  const id = useId()
  const queries = useQueryClient()
  const [isOver, setOver] = useState(false)
  const [current, setCurrent] = useState<{ name: string; share: number }>()
  const upload = useMutation({
    async mutationFn(files: File[]) {
      for (const file of files) {
        setCurrent({ name: file.name, share: 0 })
        await send(file, network, (share) => setCurrent({ name: file.name, share }))
      }
    },
    onSettled() {
      setCurrent(undefined)
      return queries.invalidateQueries()
    },
  })
  const take = (files: FileList | null) => {
    if (files?.length) upload.mutate([...files])
  }
  return (
    <div className="space-y-2">
      <label
        htmlFor={id}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault()
          setOver(false)
          take(event.dataTransfer.files)
        }}
        className={`block cursor-pointer rounded-xl border-2 border-dashed p-6 text-center text-sm motion-safe:transition focus-within:border-accent hover:border-accent ${isOver ? 'border-accent bg-tint' : 'border-line'}`}
      >
        <input
          id={id}
          type="file"
          multiple
          className="sr-only"
          disabled={upload.isPending}
          onChange={(event) => {
            take(event.target.files)
            event.target.value = ''
          }}
        />
        {texts.files.upload}
      </label>
      {current && (
        <div className="flex items-center gap-3 text-sm">
          <span className="min-w-0 truncate">{texts.files.uploading(current.name)}</span>
          <progress
            aria-label={texts.files.uploading(current.name)}
            className="flex-1 accent-accent"
            value={current.share}
          />
        </div>
      )}
      <p role="status" className="sr-only">
        {upload.isSuccess && texts.files.uploaded}
      </p>
      <Problem error={upload.error} />
    </div>
  )
}

/** Sends one file; XMLHttpRequest alone tells how much has gone. @throws RequestError */
function send(file: File, network: Network, onProgress: (share: number) => void): Promise<void> {
  const form = new FormData()
  form.set('network', network)
  form.set('name', file.name)
  form.set('file', file)
  const request = new XMLHttpRequest()
  return new Promise((resolve, reject) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total)
    request.onerror = () => reject(new RequestError(0, texts.offline))
    request.onload = () => {
      if (request.status === 200) return resolve()
      const said = (request.response as { error?: string } | null)?.error
      reject(new RequestError(request.status, said ?? String(request.status)))
    }
    request.open('POST', '/v3/files')
    request.responseType = 'json'
    request.setRequestHeader('berth-session', '1')
    request.send(form)
  })
}
