import { useWorkspaces } from '../api/workspaces.ts'
import { texts } from '../texts.ts'

/** The workspace; a choice if the user has several. On a phone the choice is on the Account page. */
export function WorkspaceChoice({ name }: { name: string }) {
  const { workspaces, current, move } = useWorkspaces()
  if (workspaces.length < 2)
    return <span className="block truncate px-2 font-medium max-md:sr-only">{name}</span>
  return (
    <>
      <select
        aria-label={texts.shell.workspace}
        value={current}
        disabled={move.isPending}
        onChange={(event) => move.mutate(event.target.value)}
        className="w-full truncate rounded-lg border border-line bg-card px-2 py-1.5 font-medium hover:border-accent max-md:hidden"
      >
        {workspaces.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {move.error && (
        <p role="alert" className="px-2 text-bad text-xs max-md:hidden">
          {move.error.message}
        </p>
      )}
    </>
  )
}
