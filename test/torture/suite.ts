/** A test that shows how to replay it, and what the processes logged, if it fails. */
import { it } from 'node:test'
import { replay } from './seed.ts'

const LINES = 200

export function tortureTest(name: string, output: () => string, test: () => Promise<void>): void {
  it(name, { timeout: 900_000 }, async () => {
    try {
      await test()
    } catch (error) {
      console.error(`${replay} replays it. The last that was logged:\n${lastLines(output())}`)
      throw error
    }
  })
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-LINES).join('\n')
}
