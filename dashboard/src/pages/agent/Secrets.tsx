import { texts } from '../../texts.ts'

export function Secrets() {
  return <p>{texts.agent.tabs.secrets}</p>
}
