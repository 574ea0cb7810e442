import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { AT_ONCE, useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { bytes } from '../../../parts/format.ts'
import { Section } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Card, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { stateWord } from '../../agents/agents.ts'
import { shownState } from '../../agents/failure.ts'

const t = texts.settings
const AGENT = '/v0/agents/{agentId}'

/** The agent's runtime and engine version, and the actions on them. */
export function Engine({ agentId }: { agentId: string }) {
  const params = { path: { agentId } }
  const started = { params: { ...params, header: AT_ONCE } }
  const status = useQuery({
    queryKey: ['agents', agentId, 'status'],
    queryFn: () => unwrap(api.GET(`${AGENT}/status`, { params })),
  })
  const versions = useQuery({
    queryKey: ['agents', agentId, 'versions'],
    queryFn: () => unwrap(api.GET(`${AGENT}/available-agent-versions`, { params })),
  })
  const [version, setVersion] = useState('')
  const restart = useChange((version: string) =>
    unwrap(api.POST(`${AGENT}/restart`, { ...started, body: version ? { version } : {} })),
  )
  const scripts = useChange(() => unwrap(api.POST(`${AGENT}/scripts/retry`, started)))
  const { data } = status
  const current = data?.agentVersion
  const latest = versions.data?.availableVersions[0]
  const others = versions.data?.availableVersions.filter((one) => one !== current) ?? []
  const isStarting = data?.status === 'starting'
  return (
    <Section
      title={t.engine}
      hint={t.engineHint}
      actions={
        <Button changes disabled={restart.isPending || isStarting} onClick={() => restart.mutate('')}>
          {texts.agents.restart}
        </Button>
      }
    >
      <Card>
        <Problem error={status.error ?? versions.error ?? restart.error ?? scripts.error} />
        {data && (
          <dl className="grid gap-x-6 gap-y-3 text-sm sm:grid-cols-[10rem_minmax(0,1fr)]">
            <dt className="text-soft">{t.state}</dt>
            <dd>
              <State state={shownState(data)} label={stateWord(shownState(data))} />
            </dd>
            <dt className="text-soft">{t.version}</dt>
            <dd className="flex flex-wrap items-center gap-2">
              <span className="tabular-nums">
                {data.engine} {current}
              </span>
              {others.length > 0 && (
                <>
                  <select
                    aria-label={t.otherVersion}
                    value={version}
                    onChange={(event) => setVersion(event.target.value)}
                    className="rounded-lg border border-line bg-page px-2 py-1.5 text-sm"
                  >
                    <option value="">{t.otherVersion}</option>
                    {others.map((one) => (
                      <option key={one} value={one}>
                        {one === latest ? t.newest(one) : one}
                      </option>
                    ))}
                  </select>
                  <Button
                    changes
                    disabled={!version || restart.isPending || isStarting}
                    onClick={() => restart.mutate(version)}
                  >
                    {t.restartOn}
                  </Button>
                </>
              )}
              {versions.data && others.length === 0 && <span className="text-soft">{t.onlyVersion}</span>}
            </dd>
            <dt className="text-soft">{t.since}</dt>
            <dd>{data.startedAt ? <Time at={data.startedAt} /> : t.unknown}</dd>
            <dt className="text-soft">{t.disk}</dt>
            <dd>{data.disk ? <Disk {...data.disk} /> : t.unknown}</dd>
            <dt className="text-soft">{t.scripts}</dt>
            <dd className="flex flex-wrap items-center gap-x-4 gap-y-2">
              {(['build', 'start'] as const).map((name) => {
                const script = data.scripts?.[name]
                return (
                  script && (
                    <span key={name} className="inline-flex items-center gap-2">
                      <code>{name}</code>
                      <State state={script.state} label={t.scriptStates[script.state] ?? script.state} />
                    </span>
                  )
                )
              })}
              <Button
                changes
                disabled={scripts.isPending || !data.reachable}
                onClick={() => scripts.mutate()}
              >
                {t.runScripts}
              </Button>
            </dd>
          </dl>
        )}
      </Card>
    </Section>
  )
}

function Disk({
  usedBytes,
  limitBytes,
  hardLimit,
}: {
  usedBytes: number
  limitBytes: number
  hardLimit: boolean
}) {
  return (
    <>
      <meter
        aria-label={t.disk}
        className="block h-2 w-full max-w-sm"
        min={0}
        max={limitBytes}
        high={limitBytes * 0.9}
        value={usedBytes}
      />
      <p className="mt-1 text-soft">
        {t.used(bytes(usedBytes), bytes(limitBytes))} {hardLimit ? t.hardLimit : t.softLimit}
      </p>
    </>
  )
}
