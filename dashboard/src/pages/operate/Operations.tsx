import { texts } from '../../texts.ts'

export function Operations() {
  return <p>{texts.operate.tabs.operations}</p>
}
