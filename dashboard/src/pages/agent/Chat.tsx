import { texts } from '../../texts.ts'

export function Chat() {
  return <p>{texts.agent.tabs.chat}</p>
}
