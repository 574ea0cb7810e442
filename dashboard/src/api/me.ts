import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'

/** Otherwise every component that checks rights would refetch the user when it mounts. */
const FRESH_MS = 60_000

/** The signed-in user; refetched after each change, and when a response shows that the session has ended. */
export const useMe = () =>
  useQuery({
    queryKey: ['me'],
    queryFn: () => unwrap(api.GET('/v0/me')),
    retry: false,
    staleTime: FRESH_MS,
  })

/** The rights of the signed-in user. Pages offer only what is allowed; the API checks every request anyway. */
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
