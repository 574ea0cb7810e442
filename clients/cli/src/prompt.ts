/** Secrets from the person or from stdin, never from arguments. */
import { text } from 'node:stream/consumers'
import { UsageError } from './errors.ts'

/** A secret: typed without echo in a terminal, otherwise all of stdin. @throws UsageError if it is empty. */
export async function readSecret(question: string): Promise<string> {
  const secret = process.stdin.isTTY ? await ask(question) : (await text(process.stdin)).replace(/\r?\n$/, '')
  if (!secret) throw new UsageError('it must not be empty')
  return secret
}

const CTRL_C = '\x03'
const CTRL_D = '\x04'
const ERASE = ['\x7f', '\b']

function ask(question: string): Promise<string> {
  const { stdin, stderr } = process
  return new Promise((resolve) => {
    let typed = ''
    const end = () => {
      stdin.off('data', read).setRawMode(false).pause()
      stderr.write('\n')
    }
    const read = (data: string) => {
      for (const character of data) {
        if (character === CTRL_C) {
          end()
          process.kill(process.pid, 'SIGINT')
          return
        }
        if (character === '\r' || character === '\n' || character === CTRL_D) {
          end()
          resolve(typed.trim())
          return
        }
        typed = ERASE.includes(character) ? typed.slice(0, -1) : typed + character
      }
    }
    stderr.write(question)
    stdin.setEncoding('utf8').setRawMode(true).resume().on('data', read)
  })
}
