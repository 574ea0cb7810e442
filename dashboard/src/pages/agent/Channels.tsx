import { texts } from '../../texts.ts'

export function Channels() {
  return <p>{texts.agent.tabs.channels}</p>
}
