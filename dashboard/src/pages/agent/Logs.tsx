import { texts } from '../../texts.ts'

export function Logs() {
  return <p>{texts.agent.tabs.logs}</p>
}
