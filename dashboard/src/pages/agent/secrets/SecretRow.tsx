import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Menu, MenuItem } from '../../../parts/menu.tsx'
import { Row, Tag } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { attach, ChangeValue, Refused, RemoveSecret, type Secret } from './dialogs.tsx'

const t = texts.secrets

export function SecretRow({
  agentId,
  secret,
  isAttached,
  isSynced,
}: {
  agentId: string
  secret: Secret
  isAttached: boolean
  isSynced: boolean
}) {
  const { id, name, type, value, updatedAt } = secret
  const [dialog, setDialog] = useState<'value' | 'remove'>()
  const others = secret.agents.filter((one) => one.agentId !== agentId)
  const change = useChange<unknown>(() =>
    isAttached
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
            {isAttached ? t.detach : t.attach}
          </Button>
          <Menu changes label={texts.agents.more(name)}>
            <MenuItem onSelect={() => setDialog('value')}>{t.rotate}</MenuItem>
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
        {!isSynced && <span className="text-busy text-xs">{t.notSynced}</span>}
      </h3>
      <p className="mt-0.5 break-words text-soft text-sm">
        {type === 'variable' && value ? <code className="break-all">{value}</code> : '••••••••'}
        {' · '}
        <Time at={updatedAt} words={t.changed} />
        {others.length > 0 && ` · ${t.alsoIn(others.map((one) => one.name))}`}
      </p>
      <Refused error={change.error} />
      {dialog === 'value' && <ChangeValue secret={secret} onClose={() => setDialog(undefined)} />}
      {dialog === 'remove' && <RemoveSecret secret={secret} onClose={() => setDialog(undefined)} />}
    </Row>
  )
}
