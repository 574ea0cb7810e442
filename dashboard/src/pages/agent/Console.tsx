import { texts } from '../../texts.ts'

export function Console() {
  return <p>{texts.agent.tabs.console}</p>
}
