import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Section } from '../../../parts/section.tsx'
import { Button, Card, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Line } from './Line.tsx'

const t = texts.settings
const HIDDEN = '••••••••••••'

/** Access to the agent: its host, its tokens and its Git repository. */
export function Access({ agentId }: { agentId: string }) {
  const params = { path: { agentId } }
  const [isShown, setShown] = useState(false)
  const [isRotating, setRotating] = useState(false)
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'gateway-token'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/gateway-token', { params })),
  })
  const mint = useChange(() => unwrap(api.POST('/v0/agents/{agentId}/platform/token', { params })))
  const openai = `${location.origin}/v0/agents/${agentId}/openai/v1`
  const git = (token: string) => {
    const { protocol, host } = location
    return `git clone ${protocol}//x:${token}@${host}/v0/agents/${agentId}/git ${agentId}`
  }
  return (
    <Section title={t.access} hint={t.accessHint}>
      <Card>
        <Problem error={error} />
        {data && (
          <dl className="space-y-4 text-sm">
            <Line label={t.host} shown={data.baseUrl} />
            <Line label={t.openai} shown={openai} hint={t.openaiHint} />
            <Line label={t.gatewayToken} shown={isShown ? data.token : HIDDEN} copied={data.token}>
              <Button changes aria-pressed={isShown} onClick={() => setShown(!isShown)}>
                {isShown ? t.hide : t.reveal}
              </Button>
              <Button changes onClick={() => setRotating(true)}>
                {t.rotate}
              </Button>
            </Line>
            <Line
              label={t.git}
              shown={git(isShown ? data.token : HIDDEN)}
              copied={git(data.token)}
              hint={t.gitHint}
            />
            <Line
              label={t.platformToken}
              shown={mint.data ? mint.data.token : ''}
              copied={mint.data?.token ?? ''}
              hint={t.platformHint}
            >
              <Button changes disabled={mint.isPending} onClick={() => mint.mutate()}>
                {t.mint}
              </Button>
            </Line>
          </dl>
        )}
        <Problem error={mint.error} />
      </Card>
      {isRotating && <Rotate agentId={agentId} onClose={() => setRotating(false)} />}
    </Section>
  )
}

function Rotate({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const rotate = useChange(
    () => unwrap(api.POST('/v0/agents/{agentId}/gateway-token/rotate', { params: { path: { agentId } } })),
    onClose,
  )
  return (
    <FormDialog
      title={t.rotateTitle}
      hint={t.rotateHint}
      submit={t.rotate}
      look="danger"
      saving={rotate}
      onSubmit={() => rotate.mutate()}
      onClose={onClose}
    />
  )
}
