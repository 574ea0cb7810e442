import { useQuery } from '@tanstack/react-query'
import { useAgent } from '../../api/agent.ts'
import { api, RequestError, unwrap } from '../../api/client.ts'
import { bytes, clock } from '../../parts/format.ts'
import { Cell, Table } from '../../parts/table.tsx'
import { Empty, Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Plot } from './usage/Plot.tsx'

/** The interval of the agent's measurements. */
const EVERY_MS = 15_000
/** The table has one row per minute. */
const ROW_MS = 60_000
const words = texts.usage

/** An agent's use of memory, processor and disk in the last hour. */
export function Usage() {
  const { agentId, agent } = useAgent()
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'usage'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/usage', { params: { path: { agentId } } })),
    refetchInterval: EVERY_MS,
  })
  if (error) {
    const isDown = error instanceof RequestError && error.status === 503
    return isDown && agent?.status === 'not_running' ? (
      <Empty changes title={words.notRunning} hint={words.notRunningHint} />
    ) : (
      <Problem error={error} />
    )
  }
  if (!data) return <Loading />
  const { samples, memoryLimitBytes, disk } = data
  if (samples.length === 0) return <Empty title={words.none} hint={words.noneHint} />
  const points = (pick: (sample: (typeof samples)[number]) => number) =>
    samples.map((sample) => ({ at: Date.parse(sample.at), value: pick(sample) }))
  return (
    <>
      <div className="grid gap-4 lg:grid-cols-2">
        <Plot
          title={words.memory}
          points={points(({ memoryBytes }) => memoryBytes)}
          limit={memoryLimitBytes}
          format={bytes}
        />
        <Plot title={words.processor} points={points(({ cpus }) => cpus)} format={words.cpus} />
        <Plot
          title={words.disk}
          points={points(({ diskBytes }) => diskBytes)}
          limit={disk.limitBytes}
          format={bytes}
        />
        <Plot
          title={words.processes}
          points={points(({ processes }) => processes)}
          format={(value) => String(value)}
        />
      </div>
      <p className="mt-4 text-soft text-sm">{words.hint}</p>
      <details className="mt-4">
        <summary className="mb-3 cursor-pointer font-medium text-sm">{words.table}</summary>
        <Table label={words.table} columns={words.columns} numbers={words.columns.slice(1)}>
          {byMinute(samples).map((sample) => (
            <tr key={sample.at}>
              <Cell className="tabular-nums">{clock(Date.parse(sample.at))}</Cell>
              <Cell numeric>{bytes(sample.memoryBytes)}</Cell>
              <Cell numeric>{words.cpus(sample.cpus)}</Cell>
              <Cell numeric>{bytes(sample.diskBytes)}</Cell>
              <Cell numeric>{sample.processes}</Cell>
            </tr>
          ))}
        </Table>
      </details>
    </>
  )
}

/** The newest sample of each minute, newest first. */
function byMinute<T extends { at: string }>(samples: T[]): T[] {
  const minutes = new Map(samples.map((sample) => [Math.floor(Date.parse(sample.at) / ROW_MS), sample]))
  return [...minutes.values()].reverse()
}
