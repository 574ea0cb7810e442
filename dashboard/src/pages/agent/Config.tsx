import { texts } from '../../texts.ts'

export function Config() {
  return <p>{texts.agent.tabs.config}</p>
}
