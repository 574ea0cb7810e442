import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { Row, Rows, Section, Tag } from '../../parts/section.tsx'
import { Button, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { CHANNELS, type Channel, type ChannelName, readChannels } from './channels/channels.ts'
import { ConnectChannel, RemoveChannel } from './channels/dialogs.tsx'

const t = texts.channels

/** The messaging services that connect people with the agent. */
export function Channels() {
  const { agentId, agent } = useAgent()
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'channels'],
    queryFn: () => readChannels(agentId),
  })
  if (!agent) return null
  return (
    <Section title={t.title} hint={t.hint}>
      <Problem error={error} />
      {data && (
        <Rows label={t.title}>
          {CHANNELS.map((name) => (
            <ChannelRow key={name} agentId={agentId} name={name} channel={data[name]} />
          ))}
        </Rows>
      )}
    </Section>
  )
}

function ChannelRow({
  agentId,
  name,
  channel,
}: {
  agentId: string
  name: ChannelName
  channel: Channel | null
}) {
  const [dialog, setDialog] = useState<'connect' | 'remove'>()
  const close = () => setDialog(undefined)
  const { label, needs } = t.services[name]
  return (
    <Row
      actions={
        channel ? (
          <>
            <Button changes onClick={() => setDialog('connect')}>
              {t.change}
            </Button>
            <Menu changes label={texts.agents.more(label)}>
              <MenuItem look="danger" onSelect={() => setDialog('remove')}>
                {t.remove}
              </MenuItem>
            </Menu>
          </>
        ) : (
          <Button changes onClick={() => setDialog('connect')}>
            {t.connect}
          </Button>
        )
      }
    >
      <h3 className="flex flex-wrap items-center gap-3 font-medium text-sm">
        {label}
        <ChannelState channel={channel} />
      </h3>
      {channel ? (
        <p className="mt-0.5 flex flex-wrap items-center gap-x-2 gap-y-1 break-words text-soft text-sm">
          {t.policies[channel.dmPolicy] ?? channel.dmPolicy}
          {channel.allowFrom.length > 0 && <Tag>{t.senders(channel.allowFrom.length)}</Tag>}
          {[channel.botTokenHint, channel.appTokenHint].map(
            (hint, index) =>
              hint && (
                <code key={hint + String(index)} className="text-xs">
                  {hint}
                </code>
              ),
          )}
        </p>
      ) : (
        <p className="mt-0.5 text-soft text-sm">{needs}</p>
      )}
      {channel?.linked === false && <p className="mt-1 text-sm">{t.link}</p>}
      {dialog === 'connect' && (
        <ConnectChannel agentId={agentId} name={name} channel={channel} onClose={close} />
      )}
      {dialog === 'remove' && <RemoveChannel agentId={agentId} name={name} onClose={close} />}
    </Row>
  )
}

function ChannelState({ channel }: { channel: Channel | null }) {
  if (!channel) return <State state="none" label={t.states.none} />
  if (!channel.enabled) return <State state="off" label={t.states.off} />
  if (channel.linked === false) return <State state="pending" label={t.states.unlinked} />
  return <State state="ok" label={t.states.on} />
}
