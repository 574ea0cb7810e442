import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { shorten } from '../../parts/format.ts'
import { Note, Row, Rows, Section, Tag } from '../../parts/section.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { EngineAway } from './EngineAway.tsx'

const t = texts.devices
/** The engine does not announce pairing requests, which expire after five minutes, so the page polls. */
const ASK_MS = 10_000

const readDevices = (agentId: string) =>
  unwrap(api.GET('/v0/agents/{agentId}/devices', { params: { path: { agentId } } }))
type Found = Awaited<ReturnType<typeof readDevices>>
type Device = Found['paired'][number]

/** The devices that wait for approval, and the paired ones. */
export function Devices() {
  const { agentId, agent } = useAgent()
  const [said, setSaid] = useState('')
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'devices'],
    queryFn: () => readDevices(agentId),
    retry: false,
    refetchInterval: ASK_MS,
  })
  const approveAll = useChange(
    () => unwrap(api.POST('/v0/agents/{agentId}/devices/approve-all', { params: { path: { agentId } } })),
    ({ approved, failed }) =>
      setSaid(
        [t.approved(approved.length), ...failed.map((one) => `${one.requestId}: ${one.error}`)].join(' '),
      ),
  )
  if (!agent) return null
  if (error) return <EngineAway error={error} agent={agent} />
  if (!data) return <Loading />
  const { pending, paired } = data
  return (
    <>
      {said && <Note>{said}</Note>}
      <Section
        title={t.pending}
        hint={t.pendingHint}
        actions={
          pending.length > 1 && (
            <Button changes look="main" disabled={approveAll.isPending} onClick={() => approveAll.mutate()}>
              {t.approveAll(pending.length)}
            </Button>
          )
        }
      >
        <Problem error={approveAll.error} />
        {pending.length === 0 ? (
          <Empty title={t.nonePending} hint={t.nonePendingHint} />
        ) : (
          <Rows label={t.pending}>
            {pending.map((device) => (
              <PendingRow key={device.requestId} agentId={agentId} device={device} />
            ))}
          </Rows>
        )}
      </Section>
      <Section title={t.paired}>
        {paired.length === 0 ? (
          <Empty title={t.nonePaired} />
        ) : (
          <Rows label={t.paired}>
            {paired.map((device) => (
              <Row key={device.deviceId}>
                <About device={device} />
              </Row>
            ))}
          </Rows>
        )}
      </Section>
    </>
  )
}

function PendingRow({ agentId, device }: { agentId: string; device: Found['pending'][number] }) {
  const { requestId, ts } = device
  const approve = useChange(() =>
    unwrap(
      api.POST('/v0/agents/{agentId}/devices/{requestId}/approve', {
        params: { path: { agentId, requestId } },
      }),
    ),
  )
  return (
    <Row
      actions={
        <Button changes look="main" disabled={approve.isPending} onClick={() => approve.mutate()}>
          {t.approve}
        </Button>
      }
    >
      <About device={device} />
      {ts && (
        <p className="text-soft text-sm">
          <Time at={ts} words={t.asked} />
        </p>
      )}
      <Problem error={approve.error} />
    </Row>
  )
}

function About({ device }: { device: Device }) {
  const { deviceId, displayName, clientId, platform, remoteIp, roles = [], scopes = [] } = device
  const about = [displayName && clientId, platform, remoteIp, shorten(deviceId)].filter(Boolean)
  return (
    <>
      <h3 className="break-words font-medium text-sm">{displayName ?? clientId ?? shorten(deviceId)}</h3>
      <p className="break-words text-soft text-sm">{about.join(' · ')}</p>
      <p className="mt-1 flex flex-wrap gap-1">
        {[...new Set([...roles, ...scopes])].map((one) => (
          <Tag key={one}>{one}</Tag>
        ))}
      </p>
    </>
  )
}
