import { texts } from '../../texts.ts'

export function Skills() {
  return <p>{texts.agent.tabs.skills}</p>
}
