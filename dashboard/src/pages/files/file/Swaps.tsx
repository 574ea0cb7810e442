import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { shorten } from '../../../parts/format.ts'
import { useMayChange } from '../../../parts/rights.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Card, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { FileRecord, Network } from '../files.ts'
import { useDetails } from './details.ts'

const words = texts.files.swaps

/** The content that gateways serve instead of a CID, and earlier swaps. */
export function Swaps({ file, network }: { file: FileRecord; network: Network }) {
  const queries = useQueryClient()
  const [target, setTarget] = useState('')
  const details = useDetails(network, file)
  const mayChange = useMayChange()
  const params = { path: { network, cid: file.cid } }
  const path = '/v3/files/{network}/swap/{cid}' as const
  const swap = useMutation({
    mutationFn: (to: string | null) =>
      unwrap<unknown>(
        to === null ? api.DELETE(path, { params }) : api.PUT(path, { params, body: { swap_cid: to } }),
      ),
    async onSuccess() {
      setTarget('')
      await queries.invalidateQueries()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    swap.mutate(target.trim())
  }
  const entries = details.data?.swaps ?? []
  const current = entries[0]?.mapped_cid
  return (
    <Card title={words.title}>
      <p className="text-soft text-sm">{words.hint}</p>
      {current && (
        <div className="mt-3 flex flex-wrap items-center gap-2 rounded-lg bg-tint px-3 py-2 text-sm">
          <p className="mr-auto min-w-0 break-all">
            {words.current} <code className="text-xs">{current}</code>
          </p>
          <Button changes disabled={swap.isPending} onClick={() => swap.mutate(null)}>
            {words.undo}
          </Button>
        </div>
      )}
      {mayChange && (
        <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2">
          <div className="min-w-48 flex-1">
            <Field
              label={words.to}
              required
              value={target}
              onChange={(event) => setTarget(event.target.value)}
            />
          </div>
          <Button changes type="submit" disabled={swap.isPending}>
            {words.submit}
          </Button>
        </form>
      )}
      <div className="mt-3">
        <Problem error={swap.error ?? details.error} />
      </div>
      {entries.length > 0 && (
        <ol aria-label={words.history} className="mt-3 divide-y divide-line border-line border-t text-sm">
          {entries.map(({ mapped_cid, created_at }, index) => (
            <li key={created_at} className="flex flex-wrap items-center gap-2 py-2">
              <span className="mr-auto">
                {mapped_cid ? <code title={mapped_cid}>{shorten(mapped_cid)}</code> : words.removed}
              </span>
              <Time at={created_at} className="text-soft text-xs" />
              {index > 0 && mapped_cid && mapped_cid !== current && (
                <Button changes disabled={swap.isPending} onClick={() => swap.mutate(mapped_cid)}>
                  {words.again}
                </Button>
              )}
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}
