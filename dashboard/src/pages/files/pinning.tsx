/** The progress of pin operations. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { bytes } from '../../parts/format.ts'
import { texts } from '../../texts.ts'
import { isOver, type Operation } from '../operate/operations/operations.ts'
import { Bar } from './Bar.tsx'

const words = texts.files.pins
/** How often to check the progress of a retrieval, which has no events. */
const POLL_MS = 2000

/** The newest operation that pins a file, refetched until it ends. @param id of the file, and also of its pin */
export function usePinning(id: string, isUnderWay = true): Operation | undefined {
  const { data } = useQuery({
    queryKey: ['operations', id],
    queryFn: () =>
      unwrap(api.GET('/v0/operations', { params: { query: { target: id, kind: 'pin.add', limit: 1 } } })),
    refetchInterval: ({ state }) => {
      const last = state.data?.data.operations[0]
      return isUnderWay && !(last && isOver(last)) && POLL_MS
    },
  })
  return data?.data.operations[0]
}

/** The blocks and bytes received so far, and why the last attempt ended. */
export function Progress({ operation }: { operation: Operation | undefined }) {
  if (!operation) return null
  const { blocks, bytes: had, total_bytes: all, replicas } = operation.progress ?? {}
  const share = typeof had === 'number' && typeof all === 'number' && all > 0 ? had / all : undefined
  return (
    <>
      {!isOver(operation) && typeof blocks === 'number' && (
        <div className="mt-2 flex items-center gap-3 text-soft text-xs tabular-nums">
          <Bar label={words.progress} {...(share !== undefined && { value: share })} className="flex-1" />
          {isCount(replicas)
            ? words.replicas(replicas.pinned, replicas.wanted)
            : words.received(blocks, typeof had === 'number' ? bytes(had) : '')}
        </div>
      )}
      {operation.error && <p className="mt-2 break-words text-soft text-xs">{operation.error}</p>}
    </>
  )
}

/** True for the replicas in IPFS Cluster, which count once the own node has everything. */
const isCount = (value: unknown): value is { pinned: number; wanted: number } =>
  typeof value === 'object' && value !== null && 'pinned' in value
