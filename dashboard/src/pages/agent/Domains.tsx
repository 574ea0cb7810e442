import { texts } from '../../texts.ts'

export function Domains() {
  return <p>{texts.agent.tabs.domains}</p>
}
