import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'
import { useMe } from './me.ts'

/** The signed-in user's workspaces, and a function that switches to another one and reloads the whole page. */
export function useWorkspaces() {
  const me = useMe().data?.data
  const queries = useQueryClient()
  const move = useMutation({
    mutationFn: (workspaceId: string) => unwrap(api.POST('/v0/sessions/move', { body: { workspaceId } })),
    onSuccess: () => location.assign('/dashboard'),
    // The response may be lost after the session has moved: the shell then follows the session.
    onError: () => queries.invalidateQueries({ queryKey: ['me'] }),
  })
  return { workspaces: me?.workspaces ?? [], current: me?.workspace.id, move }
}
