import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from './client.ts'
import { useMe } from './me.ts'

/** The workspaces of who is signed in, and going on in another one: the whole page is loaded anew there. */
export function useWorkspaces() {
  const me = useMe().data?.data
  const queries = useQueryClient()
  const move = useMutation({
    mutationFn: (workspaceId: string) => unwrap(api.POST('/v0/sessions/move', { body: { workspaceId } })),
    onSuccess: () => location.assign('/dashboard'),
    // The answer may be lost on the way: then the session is there already, and the shell follows it.
    onError: () => queries.invalidateQueries({ queryKey: ['me'] }),
  })
  return { workspaces: me?.workspaces ?? [], current: me?.workspace.id, move }
}
