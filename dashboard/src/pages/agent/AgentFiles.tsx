import { texts } from '../../texts.ts'

export function AgentFiles() {
  return <p>{texts.agent.tabs.files}</p>
}
