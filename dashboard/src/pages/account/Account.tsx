import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { Dotted } from '../../parts/section.tsx'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Identities } from './Identities.tsx'
import { Passkeys } from './Passkeys.tsx'
import { Sessions } from './Sessions.tsx'
import { Workspaces } from './Workspaces.tsx'

/** The user's ways to sign in, sessions and workspaces. */
export function Account() {
  const ways = useQuery({ queryKey: ['login'], queryFn: () => unwrap(api.GET('/v0/login')) })
  const me = useMe().data?.data
  const { passkey, oidc } = ways.data?.data ?? {}
  return (
    <>
      <PageHead
        title={texts.account.title}
        note={
          me && (
            <Dotted>
              {me.user.name}
              {texts.operate.members.roles[me.role]}
              {me.workspace.name}
            </Dotted>
          )
        }
      />
      <div className="space-y-10">
        <Workspaces />
        {ways.data && <Passkeys canAdd={passkey === true} />}
        {oidc && <Identities provider={oidc.name} />}
        <Sessions />
      </div>
    </>
  )
}
