import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Identities } from './Identities.tsx'
import { Passkeys } from './Passkeys.tsx'
import { Sessions } from './Sessions.tsx'
import { Workspaces } from './Workspaces.tsx'

/** How the user signs in, and where they are signed in. */
export function Account() {
  const ways = useQuery({ queryKey: ['login'], queryFn: () => unwrap(api.GET('/v0/login')) })
  const { passkey, oidc } = ways.data?.data ?? {}
  return (
    <>
      <PageHead title={texts.account.title} />
      <div className="space-y-10">
        <Workspaces />
        {ways.data && <Passkeys canAdd={passkey === true} />}
        {oidc && <Identities provider={oidc.name} />}
        <Sessions />
      </div>
    </>
  )
}
