import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'

/** Every part that asks for rights would read it again when it is shown. */
const FRESH_MS = 60_000

/** Who is signed in; read again after each change, and when an answer is that the session has ended. */
export const useMe = () =>
  useQuery({
    queryKey: ['me'],
    queryFn: () => unwrap(api.GET('/v0/me')),
    retry: false,
    staleTime: FRESH_MS,
  })

/** What who is signed in may do: what they may not is not offered. The API decides all the same. */
export function useRights() {
  const me = useMe().data?.data
  return {
    workspaceId: me?.workspace.id ?? '',
    userId: me?.user.id,
    isOwner: me?.role === 'owner',
    mayWrite: me !== undefined && me.role !== 'viewer',
    isInstanceAdmin: me?.isInstanceAdmin ?? false,
  }
}
