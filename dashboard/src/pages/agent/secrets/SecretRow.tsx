import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Menu, MenuItem } from '../../../parts/menu.tsx'
import { Row, Tag } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Access } from './Access.tsx'
import { ChangeValue, mayHaveHosts, Refused, RemoveSecret } from './dialogs.tsx'
import { attach, type Secret } from './secret.ts'

const t = texts.secrets

export function SecretRow({
  agentId,
  secret,
  attached,
}: {
  agentId: string
  secret: Secret
  /** Its state in this agent; undefined if the agent does not have it. */
  attached?: { readable: boolean; synced: boolean } | undefined
}) {
  const { id, name, type, value, updatedAt } = secret
  const [dialog, setDialog] = useState<'value' | 'remove'>()
  const others = secret.agents.filter((one) => one.agentId !== agentId)
  const change = useChange<unknown>(() =>
    attached
      ? unwrap(
          api.DELETE('/v0/agents/{agentId}/secrets/{secretId}', {
            params: { path: { agentId, secretId: id } },
          }),
        )
      : attach(agentId, id),
  )
  return (
    <Row
      actions={
        <>
          <Button changes disabled={change.isPending} onClick={() => change.mutate()}>
            {attached ? t.detach : t.attach}
          </Button>
          <Menu changes label={texts.agents.more(name)}>
            <MenuItem onSelect={() => setDialog('value')}>
              {mayHaveHosts(secret) ? t.change : t.rotate}
            </MenuItem>
            <MenuItem look="danger" onSelect={() => setDialog('remove')}>
              {t.remove}
            </MenuItem>
          </Menu>
        </>
      }
    >
      <h3 className="flex flex-wrap items-center gap-2 text-sm">
        <code className="min-w-0 break-all font-medium">{name}</code>
        {type === 'variable' && <Tag>{t.types.variable}</Tag>}
        {attached?.synced === false && <span className="text-busy text-xs">{t.notSynced}</span>}
      </h3>
      <p className="mt-0.5 break-words text-soft text-sm">
        {type === 'variable' && value ? <code className="break-all">{value}</code> : '••••••••'}
        {' · '}
        <Time at={updatedAt} words={t.changed} />
        {others.length > 0 && ` · ${t.alsoIn(others.map((one) => one.name))}`}
      </p>
      <Access secret={secret} attached={attached} />
      <Refused error={change.error} />
      {dialog === 'value' && <ChangeValue secret={secret} onClose={() => setDialog(undefined)} />}
      {dialog === 'remove' && <RemoveSecret secret={secret} onClose={() => setDialog(undefined)} />}
    </Row>
  )
}
