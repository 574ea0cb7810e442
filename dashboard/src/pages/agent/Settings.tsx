import { texts } from '../../texts.ts'

export function Settings() {
  return <p>{texts.agent.tabs.settings}</p>
}
