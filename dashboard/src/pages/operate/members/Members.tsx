import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { usePages } from '../../../api/pages.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { More } from '../../../parts/more.tsx'
import { Row, Rows, Section, Tag } from '../../../parts/section.tsx'
import { Button, Loading, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import { RequireRole } from '../RequireRole.tsx'
import { Invitations } from './Invitations.tsx'
import { type Member, ROLES, type Role } from './members.ts'

const t = texts.operate.members
const PAGE = 100

/** The members of the workspace, and its invitations. */
export function Members() {
  return (
    <RequireRole who="owners">
      <List />
      <Invitations />
    </RequireRole>
  )
}

function List() {
  const { workspaceId } = useRights()
  const pages = usePages(['members'], async (pageToken) => {
    const query = { limit: PAGE, ...(pageToken && { pageToken }) }
    const { data } = await unwrap(
      api.GET('/v0/workspaces/{workspaceId}/members', { params: { path: { workspaceId }, query } }),
    )
    return { items: data.members, next: data.next_page_token }
  })
  const { items, error, hasMore } = pages
  const owners = items?.filter(({ role }) => role === 'owner') ?? []
  return (
    <Section title={t.title} hint={t.hint}>
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items && (
        <Rows label={t.title}>
          {items.map((member) => (
            <MemberRow
              key={member.id}
              member={member}
              isLastOwner={!hasMore && owners.length === 1 && member === owners[0]}
            />
          ))}
        </Rows>
      )}
      <More {...pages} />
    </Section>
  )
}

function MemberRow({
  member: { id, name, role },
  isLastOwner,
}: {
  member: Member
  /** The last owner can neither be removed nor change roles: a workspace needs an owner. */
  isLastOwner: boolean
}) {
  const { workspaceId, userId } = useRights()
  const [isGoing, setGoing] = useState(false)
  const path = { workspaceId, userId: id }
  const change = useChange((role: Role) =>
    unwrap(api.PATCH('/v0/workspaces/{workspaceId}/members/{userId}', { params: { path }, body: { role } })),
  )
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/workspaces/{workspaceId}/members/{userId}', { params: { path } })),
    () => setGoing(false),
  )
  return (
    <Row
      actions={
        !isLastOwner && (
          <>
            <Filter
              label={t.roleOf(name)}
              value={change.isPending ? (change.variables ?? role) : role}
              onChange={(chosen) => change.mutate(ROLES.find((one) => one === chosen) ?? role)}
              options={ROLES.map((one) => [one, t.roles[one]] as const)}
            />
            <Button onClick={() => setGoing(true)}>{t.remove}</Button>
          </>
        )
      }
    >
      <p className="break-words font-medium">
        {name} {id === userId && <Tag>{t.you}</Tag>}
      </p>
      <p className="text-soft text-sm">
        {t.rights[role]} {isLastOwner && t.lastOwner}
      </p>
      <div className="mt-2 empty:hidden">
        <Problem error={change.error} />
      </div>
      {isGoing && (
        <FormDialog
          title={t.removeTitle}
          hint={t.removeHint(name)}
          submit={t.remove}
          look="danger"
          saving={remove}
          onSubmit={() => remove.mutate()}
          onClose={() => setGoing(false)}
        />
      )}
    </Row>
  )
}
