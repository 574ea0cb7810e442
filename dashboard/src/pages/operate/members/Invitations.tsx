import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { usePages } from '../../../api/pages.ts'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { More } from '../../../parts/more.tsx'
import { Dotted, Row, Rows, Section } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Field, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Once } from '../Once.tsx'
import { ROLES, type Role } from './members.ts'

const t = texts.operate.invitations
const { roles, rights } = texts.operate.members
const PAGE = 50
const DAYS = [1, 7, 30]

type Page =
  paths['/v0/workspaces/{workspaceId}/invitations']['get']['responses'][200]['content']['application/json']
type Invitation = Page['data']['invitations'][number]

export function Invitations() {
  const { workspaceId } = useRights()
  const [isNew, setNew] = useState(false)
  const pages = usePages(['invitations'], async (pageToken) => {
    const query = { limit: PAGE, ...(pageToken && { pageToken }) }
    const { data } = await unwrap(
      api.GET('/v0/workspaces/{workspaceId}/invitations', { params: { path: { workspaceId }, query } }),
    )
    return { items: data.invitations, next: data.next_page_token }
  })
  const { items, error } = pages
  const create = (
    <Button look="main" onClick={() => setNew(true)}>
      {t.create}
    </Button>
  )
  return (
    <Section title={t.title} hint={t.hint} actions={items && items.length > 0 && create}>
      <Problem error={error} />
      {items?.length === 0 && (
        <Empty title={t.empty} hint={t.emptyHint}>
          {create}
        </Empty>
      )}
      {items && items.length > 0 && (
        <Rows label={t.title}>
          {items.map((invitation) => (
            <InvitationRow key={invitation.id} invitation={invitation} />
          ))}
        </Rows>
      )}
      <More {...pages} />
      {isNew && <NewInvitation onClose={() => setNew(false)} />}
    </Section>
  )
}

function InvitationRow({ invitation }: { invitation: Invitation }) {
  const { workspaceId } = useRights()
  const { id, email, role, state, createdAt, expiresAt } = invitation
  const revoke = useChange(() =>
    unwrap(
      api.DELETE('/v0/workspaces/{workspaceId}/invitations/{invitationId}', {
        params: { path: { workspaceId, invitationId: id } },
      }),
    ),
  )
  const isPending = state === 'pending'
  return (
    <Row
      actions={
        isPending && (
          <Button disabled={revoke.isPending} onClick={() => revoke.mutate()}>
            {t.revoke}
          </Button>
        )
      }
    >
      <p className="flex flex-wrap items-center gap-x-3">
        <span className="break-all font-medium">{email ?? roles[role]}</span>
        <State state={state} label={t.states[state]} />
      </p>
      <p className="text-soft text-sm">
        <Dotted>
          {email && roles[role]}
          <Time at={createdAt} />
          {isPending && <Time at={expiresAt} words={t.until} />}
        </Dotted>
      </p>
      <div className="mt-2 empty:hidden">
        <Problem error={revoke.error} />
      </div>
    </Row>
  )
}

function NewInvitation({ onClose }: { onClose: () => void }) {
  const { workspaceId } = useRights()
  const [role, setRole] = useState<Role>('member')
  const [email, setEmail] = useState('')
  const [days, setDays] = useState(7)
  const create = useChange(() => {
    const body = { role, expiresInHours: days * 24, ...(email && { email }) }
    return unwrap(
      api.POST('/v0/workspaces/{workspaceId}/invitations', { params: { path: { workspaceId } }, body }),
    )
  })
  if (create.data)
    return (
      <Once
        title={t.made}
        hint={t.madeHint}
        label={t.link}
        value={`${location.origin}/login#invitation=${create.data.data.token}`}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title={t.create}
      hint={t.hint}
      submit={t.submit}
      saving={create}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Select
        label={texts.operate.members.role}
        value={role}
        onChange={(event) => setRole(ROLES.find((one) => one === event.target.value) ?? role)}
      >
        {ROLES.map((one) => (
          <option key={one} value={one}>
            {roles[one]}
          </option>
        ))}
      </Select>
      <p className="text-soft text-sm">{rights[role]}</p>
      <Field label={t.email} type="email" value={email} onChange={(event) => setEmail(event.target.value)} />
      <Select label={t.hours} value={days} onChange={(event) => setDays(Number(event.target.value))}>
        {DAYS.map((n) => (
          <option key={n} value={n}>
            {t.days(n)}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}
