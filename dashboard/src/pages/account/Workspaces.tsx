import { useWorkspaces } from '../../api/workspaces.ts'
import { Row, Rows } from '../../parts/section.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Part } from './Part.tsx'

const words = texts.account.workspaces

/** The user's workspaces, with a button to switch to each. Renders nothing if there is only one. */
export function Workspaces() {
  const { workspaces, current, move } = useWorkspaces()
  if (workspaces.length < 2) return null
  return (
    <Part title={words.title} hint={words.hint}>
      <Problem error={move.error} />
      <Rows label={words.title}>
        {workspaces.map(({ id, name, role }) => (
          <Row
            key={id}
            actions={
              id === current ? (
                <span className="text-soft text-sm">{words.current}</span>
              ) : (
                <Button disabled={move.isPending} onClick={() => move.mutate(id)}>
                  {words.open}
                </Button>
              )
            }
          >
            <p className="break-words font-medium text-sm">{name}</p>
            <p className="text-soft text-sm">{texts.operate.members.roles[role]}</p>
          </Row>
        ))}
      </Rows>
    </Part>
  )
}
