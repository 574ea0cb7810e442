import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { api, RequestError, unwrap, waitForOperation } from '../../api/client.ts'
import { Id } from '../../parts/copy.tsx'
import { shorten } from '../../parts/format.ts'
import { FormDialog } from '../../parts/forms.tsx'
import { Note } from '../../parts/section.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { ForkAgent } from '../agents/ForkAgent.tsx'
import { Compare } from './snapshots/Compare.tsx'
import { choose } from './snapshots/compared.ts'
import { Diff } from './snapshots/Diff.tsx'

const { snapshots: words } = texts
const FROM = '/shell/dashboard/agents/$agentId/snapshots'
const AT_ONCE = { Prefer: 'respond-async' }

async function readPage(agentId: string, pageToken: string) {
  const query = { limit: 20, ...(pageToken && { pageToken }) }
  const { data, error, response } = await api.GET('/v0/agents/{agentId}/snapshots', {
    params: { path: { agentId }, query },
  })
  if (!data) throw new RequestError(response.status, error?.error ?? response.statusText)
  return { snapshots: data.snapshots, next: response.headers.get('next-page-token') }
}
type Snapshot = Awaited<ReturnType<typeof readPage>>['snapshots'][number]

const ended = (operation: string, onStep: (step: string | null) => void) =>
  waitForOperation(api, operation, { onProgress: ({ step }) => onStep(step) })

/**
 * Replaces the workspace with a snapshot.
 * @param onStep receives the current step of the operation.
 * @param onDone receives the snapshot that the reset took of the workspace before it replaced it.
 */
function useReset(onStep: (step: string | null) => void, onDone: (before: string | undefined) => void) {
  const { agentId } = useAgent()
  const queries = useQueryClient()
  return useMutation({
    async mutationFn(snapshotCid: string) {
      const [newest] = (await readPage(agentId, '')).snapshots
      const answer = await unwrap(
        api.POST('/v0/agents/{agentId}/snapshots/reset', {
          params: { path: { agentId }, header: AT_ONCE },
          body: { snapshotCid },
        }),
      )
      if ('operation' in answer) await ended(answer.operation.id, onStep)
      return newest?.createdAt
    },
    async onSuccess(newestBefore, chosen) {
      const [{ snapshots }] = await Promise.all([readPage(agentId, ''), queries.invalidateQueries()])
      // If the workspace already matched this snapshot, there is nothing to undo.
      const isNew = snapshots[0]?.createdAt !== newestBefore
      onDone(isNew ? snapshots.find(({ snapshotCid }) => snapshotCid !== chosen)?.snapshotCid : undefined)
    },
  })
}

/** The history of the agent's workspace: what changed when, and resets to earlier snapshots. */
export function Snapshots() {
  const { agentId } = useAgent()
  const queries = useQueryClient()
  const [step, setStep] = useState<string | null>(null)
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['agents', agentId, 'snapshots'],
    queryFn: ({ pageParam }) => readPage(agentId, pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  })
  const take = useMutation({
    async mutationFn() {
      const answer = await unwrap(
        api.POST('/v0/agents/{agentId}/snapshots/sync', {
          params: { path: { agentId }, header: AT_ONCE },
        }),
      )
      if ('operation' in answer) await ended(answer.operation.id, setStep)
    },
    onSettled: () => queries.invalidateQueries(),
  })
  const [before, setBefore] = useState<string>()
  const undo = useReset(setStep, () => setBefore(undefined))
  const snapshots = data?.pages.flatMap((page) => page.snapshots) ?? []
  const compared = useSearch({ from: FROM })
  const go = useNavigate({ from: '/dashboard/agents/$agentId/snapshots' })
  const cids = snapshots.map(({ snapshotCid }) => snapshotCid)
  const onCompare = (cid: string) =>
    void go({ search: choose(compared, cid, cids), replace: true, resetScroll: false })
  const button = (
    <Button changes look="main" disabled={take.isPending} onClick={() => take.mutate()}>
      {words.take}
    </Button>
  )
  return (
    <div className="space-y-4">
      {snapshots.length > 0 && button}
      <p role="status" className="text-soft text-sm empty:hidden">
        {(take.isPending || undo.isPending) && words.working(step)}
      </p>
      {before && !undo.isPending && (
        <Note actions={<Button onClick={() => undo.mutate(before)}>{words.undo}</Button>}>
          {words.restored}
        </Note>
      )}
      <Problem error={error ?? take.error ?? undo.error} />
      {data && snapshots.length === 0 && (
        <Empty changes title={words.empty} hint={words.emptyHint}>
          {button}
        </Empty>
      )}
      <Compare
        agentId={agentId}
        compared={compared}
        taken={new Map(snapshots.map(({ snapshotCid, createdAt }) => [snapshotCid, createdAt]))}
      />
      <ol className="ml-2 border-line border-l">
        {snapshots.map((snapshot, index) => (
          <li key={`${snapshot.createdAt} ${snapshot.snapshotCid}`} className="relative pb-5 pl-6">
            <span
              aria-hidden
              className={`-left-1.5 absolute top-5 size-3 rounded-full border-2 border-page ${index === 0 ? 'bg-accent' : 'bg-soft'}`}
            />
            <OneSnapshot
              snapshot={snapshot}
              isCurrent={index === 0}
              isCompared={[compared.from, compared.to].includes(snapshot.snapshotCid)}
              onRestored={setBefore}
              onCompare={snapshots.length > 1 ? () => onCompare(snapshot.snapshotCid) : undefined}
            />
          </li>
        ))}
      </ol>
      {hasNextPage && (
        <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {words.older}
        </Button>
      )}
    </div>
  )
}

function OneSnapshot({
  snapshot,
  isCurrent,
  isCompared,
  onRestored,
  onCompare,
}: {
  snapshot: Snapshot
  isCurrent: boolean
  isCompared: boolean
  onRestored: (before: string | undefined) => void
  onCompare: (() => void) | undefined
}) {
  const { snapshotCid, changeSummary, contentDiff, commitSha, createdAt } = snapshot
  const { agentId, agent } = useAgent()
  const [isGoing, setGoing] = useState(false)
  const [isForking, setForking] = useState(false)
  return (
    <article className={`rounded-xl border bg-card p-4 ${isCompared ? 'border-accent' : 'border-line'}`}>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <h2 className="break-words font-medium">
            {changeSummary ?? words.noSummary}
            {isCurrent && <span className="ml-2 text-accent text-xs">{words.current}</span>}
          </h2>
          <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-soft text-xs">
            <Time at={createdAt} />
            <Id text={snapshotCid} shown={shorten(snapshotCid)} />
            {commitSha && (
              <span>
                {words.commit} <code>{commitSha.slice(0, 7)}</code>
              </span>
            )}
          </p>
        </div>
        <div className="flex gap-2">
          {onCompare && (
            <Button
              aria-pressed={isCompared}
              className="aria-pressed:border-accent aria-pressed:text-accent"
              onClick={onCompare}
            >
              {isCompared ? words.comparing : words.compare}
            </Button>
          )}
          <Button changes onClick={() => setForking(true)}>
            {texts.agents.fork}
          </Button>
          {!isCurrent && (
            <Button changes onClick={() => setGoing(true)}>
              {words.reset}
            </Button>
          )}
        </div>
      </div>
      {contentDiff && (
        <details className="mt-3">
          <summary className="cursor-pointer text-sm text-soft hover:text-ink">{words.changes}</summary>
          <p className="my-2 text-soft text-xs">{words.against}</p>
          <Diff diff={contentDiff} />
        </details>
      )}
      {isForking && (
        <ForkAgent
          agent={{ agentId, name: agent?.name ?? agentId }}
          snapshotCid={snapshotCid}
          onClose={() => setForking(false)}
        />
      )}
      {isGoing && <Reset snapshotCid={snapshotCid} onRestored={onRestored} onClose={() => setGoing(false)} />}
    </article>
  )
}

function Reset({
  snapshotCid,
  onRestored,
  onClose,
}: {
  snapshotCid: string
  onRestored: (before: string | undefined) => void
  onClose: () => void
}) {
  const [step, setStep] = useState<string | null>(null)
  const reset = useReset(setStep, (before) => {
    onClose()
    onRestored(before)
  })
  return (
    <FormDialog
      title={words.resetTitle}
      hint={reset.isPending ? words.working(step) : words.resetHint}
      submit={words.reset}
      saving={reset}
      onSubmit={() => reset.mutate(snapshotCid)}
      onClose={onClose}
    />
  )
}
