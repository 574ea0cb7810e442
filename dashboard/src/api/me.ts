import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'

/** Who is signed in. */
export const useMe = () =>
  useQuery({ queryKey: ['me'], queryFn: () => unwrap(api.GET('/v0/me')), retry: false })

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
