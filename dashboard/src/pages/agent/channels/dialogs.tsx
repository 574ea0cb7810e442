import { useState } from 'react'
import { AT_ONCE, useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Check } from '../../../parts/choice.tsx'
import { FormDialog, Select, TextArea } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type Channel, type ChannelName, POLICIES, type Policy, TOKENS } from './channels.ts'

const t = texts.channels

/** Connects or changes a channel. An empty field keeps the current token. */
export function ConnectChannel({
  agentId,
  name,
  channel,
  onClose,
}: {
  agentId: string
  name: ChannelName
  channel: Channel | null
  onClose: () => void
}) {
  const [tokens, setTokens] = useState<Record<string, string>>({})
  const [dmPolicy, setPolicy] = useState<Policy>(
    POLICIES.find((one) => one === channel?.dmPolicy) ?? (channel ? 'allowlist' : 'pairing'),
  )
  const [senders, setSenders] = useState(channel?.allowFrom.join('\n') ?? '')
  const [enabled, setEnabled] = useState(channel?.enabled ?? true)
  const { label, steps } = t.services[name]
  const save = useChange(() => {
    const given = Object.fromEntries(Object.entries(tokens).filter(([, value]) => value))
    const allowFrom = senders
      .split(/[\n,]/)
      .map((one) => one.trim())
      .filter(Boolean)
    return unwrap(
      api.POST('/v0/agents/{agentId}/channels/{channel}', {
        params: { path: { agentId, channel: name }, header: AT_ONCE },
        body: { ...given, dmPolicy, allowFrom, enabled },
      }),
    )
  }, onClose)
  return (
    <FormDialog
      title={channel ? t.changeTitle(label) : t.connectTitle(label)}
      hint={t.restarts}
      submit={channel ? t.save : t.connect}
      saving={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {!channel && (
        <ol className="list-decimal space-y-1 pl-5 text-soft text-sm">
          {steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      )}
      {TOKENS[name].map((token) => (
        <Field
          key={token}
          label={t.tokens[token]}
          type="password"
          autoComplete="new-password"
          required={!channel}
          placeholder={channel ? t.unchanged : ''}
          value={tokens[token] ?? ''}
          onChange={(event) => setTokens({ ...tokens, [token]: event.target.value.trim() })}
        />
      ))}
      <Select label={t.policy} value={dmPolicy} onChange={(event) => setPolicy(event.target.value as Policy)}>
        {POLICIES.map((one) => (
          <option key={one} value={one}>
            {t.policies[one]}
          </option>
        ))}
      </Select>
      <TextArea
        label={t.allowFrom}
        rows={2}
        value={senders}
        onChange={(event) => setSenders(event.target.value)}
      />
      <Check label={t.enabled} checked={enabled} onChange={setEnabled} />
    </FormDialog>
  )
}

export function RemoveChannel({
  agentId,
  name,
  onClose,
}: {
  agentId: string
  name: ChannelName
  onClose: () => void
}) {
  const remove = useChange(
    () =>
      unwrap(
        api.DELETE('/v0/agents/{agentId}/channels/{channel}', {
          params: { path: { agentId, channel: name }, header: AT_ONCE },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.removeTitle(t.services[name].label)}
      hint={t.removeHint}
      submit={t.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
