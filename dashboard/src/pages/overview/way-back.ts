/** The ways to sign in again after the session ends: a sign-in link works only once. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

/**
 * Whether the user can sign in again, and whether browsers can create passkeys here.
 * @returns undefined until known.
 */
export function useWayBack(isOn: boolean): { has: boolean; passkey: boolean } | undefined {
  const ways = useQuery({
    queryKey: ['login'],
    queryFn: () => unwrap(api.GET('/v0/login')),
    enabled: isOn,
  }).data?.data
  const passkeys = useQuery({
    queryKey: ['passkeys'],
    queryFn: () => unwrap(api.GET('/v0/passkeys')),
    enabled: isOn,
  }).data?.data.passkeys
  const hasProvider = ways !== undefined && ways.oidc !== null
  const identities = useQuery({
    queryKey: ['identities'],
    queryFn: () => unwrap(api.GET('/v0/identities')),
    enabled: isOn && hasProvider,
  }).data?.data.identities
  if (!ways || !passkeys || (hasProvider && !identities)) return undefined
  return { has: passkeys.length > 0 || (identities ?? []).length > 0, passkey: ways.passkey }
}
