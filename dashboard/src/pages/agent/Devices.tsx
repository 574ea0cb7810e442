import { texts } from '../../texts.ts'

export function Devices() {
  return <p>{texts.agent.tabs.devices}</p>
}
