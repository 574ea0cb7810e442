/** Asking Telegram whether a bot token is one of its own. */
import { badRequest } from '../../errors.ts'

const ANSWER_MS = 5000
const ANSWER_BYTES = 65_536

/**
 * Asks `getMe` of the Bot API. Only Telegram's own no is one: where it cannot be reached from here, or does not
 * answer in time, the token is taken as it is, and the agent will see.
 * @throws ApiError 400 `Telegram rejected the bot token: …`.
 */
export async function checkTelegramToken(apiUrl: string, token: string): Promise<void> {
  const refusal = await ask(`${apiUrl.replace(/\/+$/, '')}/bot${token}/getMe`).catch(() => undefined)
  if (refusal !== undefined) throw badRequest(`Telegram rejected the bot token: ${refusal}`)
}

/** Why the token is refused; undefined for any other answer. */
async function ask(url: string): Promise<string | undefined> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) })
  // 404 is for a token that has not even the shape of one.
  if (response.status !== 401 && response.status !== 404) {
    await response.body?.cancel()
    return undefined
  }
  const { ok, description } = JSON.parse(await readText(response))
  return ok === false && typeof description === 'string' ? description.slice(0, 200) : undefined
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > ANSWER_BYTES) throw new Error('Telegram answers too much')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
