import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Id } from '../../parts/copy.tsx'
import { shorten } from '../../parts/format.ts'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { PinDialog } from './PinDialog.tsx'
import { Progress, usePinning } from './pinning.tsx'

const words = texts.files.pins
const PAGE = 50
const UNDER_WAY = new Set(['prechecking', 'searching', 'retrieving', 'backfilled'])

/** Pins by CID that are still pending or have failed. A completed pin is in the list of files. */
export function Pins() {
  const [isPinning, setPinning] = useState(false)
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ['pins'],
    initialPageParam: '',
    queryFn: ({ pageParam: pageToken }) => {
      const query = { limit: PAGE, ...(pageToken && { pageToken }) }
      return unwrap(api.GET('/v3/files/public/pin_by_cid', { params: { query } }))
    },
    getNextPageParam: ({ data }) => data.next_page_token || undefined,
  })
  const pins = data?.pages.flatMap(({ data }) => data.jobs) ?? []
  const pin = (
    <Button changes look="main" onClick={() => setPinning(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <p className="text-soft text-sm">{words.hint}</p>
        {pins.length > 0 && pin}
      </div>
      <Problem error={error} />
      {data && pins.length === 0 && (
        <Empty title={words.empty} hint={words.emptyHint}>
          {pin}
        </Empty>
      )}
      <ul className="space-y-3">
        {pins.map((one) => (
          <li key={one.id} className="rounded-xl border border-line bg-card px-4 py-3 text-sm">
            <Pin pin={one} />
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <div className="mt-4 text-center">
          <Button onClick={() => void fetchNextPage()}>{texts.files.older}</Button>
        </div>
      )}
      {isPinning && <PinDialog onClose={() => setPinning(false)} />}
    </>
  )
}

interface PinRecord {
  id: string
  name: string | null
  cid: string
  status: string
  date_queued: string
}

function Pin({ pin: { id, name, cid, status, date_queued } }: { pin: PinRecord }) {
  const queries = useQueryClient()
  const isUnderWay = UNDER_WAY.has(status)
  const withdraw = useMutation({
    mutationFn: () => unwrap(api.DELETE('/v3/files/public/pin_by_cid/{id}', { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries(),
  })
  const again = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/v0/files/public/pin_by_cid/{id}/retry', { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries(),
  })
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className="w-full min-w-0 md:w-auto md:flex-1">
          <p className="truncate font-medium">{name ?? texts.files.unnamed}</p>
          <p className="text-soft text-xs">
            <Id text={cid} shown={shorten(cid)} /> · <Time at={date_queued} />
          </p>
        </div>
        <State state={isUnderWay ? status : 'failed'} label={words.states[status] ?? status} />
        {!isUnderWay && (
          <Button changes disabled={again.isPending} onClick={() => again.mutate()}>
            {words.again}
          </Button>
        )}
        <Button changes disabled={withdraw.isPending} onClick={() => withdraw.mutate()}>
          {isUnderWay ? words.withdraw : words.dismiss}
        </Button>
      </div>
      <Progress operation={usePinning(id, isUnderWay)} />
      {!isUnderWay && <p className="mt-2 text-bad text-xs">{words.causes[status]}</p>}
      <Problem error={withdraw.error ?? again.error} />
    </>
  )
}
