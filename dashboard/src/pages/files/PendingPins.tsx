import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { shorten } from '../../parts/format.ts'
import { Button, Card, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const MOST = 50

/** Pins that have not come yet, or never will. */
export function PendingPins() {
  const queries = useQueryClient()
  const { data, error } = useQuery({
    queryKey: ['pins'],
    queryFn: () => unwrap(api.GET('/v3/files/public/pin_by_cid', { params: { query: { limit: MOST } } })),
  })
  const withdraw = useMutation({
    mutationFn: (id: string) =>
      unwrap(api.DELETE('/v3/files/public/pin_by_cid/{id}', { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries(),
  })
  const pins = data?.data.jobs ?? []
  if (pins.length === 0) return <Problem error={error} />
  return (
    <Card title={texts.files.pending} className="mb-4">
      <Problem error={withdraw.error} />
      <ul className="divide-y divide-line">
        {pins.map(({ id, name, cid, status }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
            <span className="min-w-0 truncate font-medium">{name ?? texts.files.unnamed}</span>
            <code title={cid}>{shorten(cid)}</code>
            <State state={status} label={texts.files.pinStates[status]} />
            <Button className="ml-auto" disabled={withdraw.isPending} onClick={() => withdraw.mutate(id)}>
              {texts.files.withdraw}
            </Button>
          </li>
        ))}
      </ul>
    </Card>
  )
}
