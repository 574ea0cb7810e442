import { texts } from '../../texts.ts'

export function Tasks() {
  return <p>{texts.agent.tabs.tasks}</p>
}
