import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { browserName } from '../../parts/browser.ts'
import { Cell, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Part } from './Part.tsx'

const words = texts.account.sessions

/** The user's sessions. The user can end all except the current one. */
export function Sessions() {
  const queries = useQueryClient()
  const { data, error } = useQuery({
    queryKey: ['sessions'],
    queryFn: () => unwrap(api.GET('/v0/sessions')),
  })
  const end = useMutation({
    mutationFn: (ids: string[]) =>
      Promise.all(
        ids.map((sessionId) =>
          unwrap(api.DELETE('/v0/sessions/{sessionId}', { params: { path: { sessionId } } })),
        ),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  })
  const sessions = data?.data.sessions ?? []
  const others = sessions.filter(({ current }) => !current).map(({ id }) => id)
  return (
    <Part
      title={words.title}
      hint={words.hint}
      action={
        others.length > 1 && (
          <Button disabled={end.isPending} onClick={() => end.mutate(others)}>
            {words.endOthers}
          </Button>
        )
      }
    >
      <Problem error={error ?? end.error} />
      <Table label={words.title} columns={words.columns}>
        {sessions.map(({ id, userAgent, current, createdAt, lastUsedAt, expiresAt }) => (
          <tr key={id}>
            <Cell className="max-w-60 truncate font-medium">
              {userAgent ? browserName(userAgent) : words.unnamed}
            </Cell>
            <Cell className="whitespace-nowrap text-soft">
              <Time at={createdAt} />
            </Cell>
            <Cell className="whitespace-nowrap text-soft">
              <Time at={lastUsedAt ?? createdAt} />
            </Cell>
            <Cell className="whitespace-nowrap text-soft">
              <Time at={expiresAt} />
            </Cell>
            <Cell className="text-right">
              {current ? (
                <span className="text-soft">{words.current}</span>
              ) : (
                <Button disabled={end.isPending} onClick={() => end.mutate([id])}>
                  {words.end}
                </Button>
              )}
            </Cell>
          </tr>
        ))}
      </Table>
    </Part>
  )
}
