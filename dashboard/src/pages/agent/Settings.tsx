import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { useMayChange } from '../../parts/rights.tsx'
import { Section } from '../../parts/section.tsx'
import { Button, Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { DeleteAgent } from '../agents/DeleteAgent.tsx'
import { Access } from './settings/Access.tsx'
import { Engine } from './settings/Engine.tsx'
import { MakeTemplate } from './settings/MakeTemplate.tsx'
import { Names } from './settings/Names.tsx'
import { Protocols } from './settings/Protocols.tsx'

const t = texts.settings

/** The settings of an agent: its name, engine and protocols, access to it, and its deletion. */
export function Settings() {
  const { agentId, agent } = useAgent()
  const go = useNavigate()
  const mayChange = useMayChange()
  const [dialog, setDialog] = useState<'template' | 'delete'>()
  const close = () => setDialog(undefined)
  if (!agent) return null
  return (
    <>
      <Names key={agentId} agent={agent} />
      <Engine agentId={agentId} />
      <Protocols agent={agent} />
      {mayChange && (
        <>
          <Access agentId={agentId} />
          <Section title={t.template} hint={t.templateHint}>
            <Card className="flex flex-wrap items-center justify-between gap-3">
              <p className="text-sm">{agent.snapshotCid ? t.templateFrom : t.noSnapshot}</p>
              <Button changes disabled={!agent.snapshotCid} onClick={() => setDialog('template')}>
                {t.makeTemplate}
              </Button>
            </Card>
          </Section>
          <Section title={t.danger}>
            <Card className="flex flex-wrap items-center justify-between gap-3 border-bad/50">
              <p className="text-sm">{t.dangerHint}</p>
              <Button changes look="danger" onClick={() => setDialog('delete')}>
                {t.remove}
              </Button>
            </Card>
          </Section>
        </>
      )}
      {dialog === 'template' && <MakeTemplate agent={agent} onClose={close} />}
      {dialog === 'delete' && (
        <DeleteAgent agent={agent} onClose={close} onDeleted={() => void go({ to: '/dashboard/agents' })} />
      )}
    </>
  )
}
