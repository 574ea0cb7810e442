import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'

/** Every part that asks for rights would read it again when it is shown. */
const FRESH_MS = 60_000

/** The user who is signed in; read again after each change, and when an answer says that the session has ended. */
export const useMe = () =>
  useQuery({
    queryKey: ['me'],
    queryFn: () => unwrap(api.GET('/v0/me')),
    retry: false,
    staleTime: FRESH_MS,
  })

/** The rights of the user who is signed in. Pages offer nothing that is not allowed; the API checks all the same. */
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
