import { texts } from '../../texts.ts'

export function Snapshots() {
  return <p>{texts.agent.tabs.snapshots}</p>
}
