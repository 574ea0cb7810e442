/** Asks Telegram whether it accepts a bot token. */
import { badRequest } from '../../errors.ts'
import { readWhole } from '../../lib/read.ts'
import { trimSlashes } from '../../lib/slashes.ts'

const ANSWER_MS = 5000
const ANSWER_BYTES = 65_536

/**
 * Calls `getMe` of the Bot API. Only Telegram's own refusal counts: if Telegram cannot be reached from here, or does
 * not respond in time, the token is accepted unchecked.
 * @param apiUrl BERTH_TELEGRAM_URL; empty to skip the check.
 * @param token undefined if none was given.
 * @throws ApiError 400 `Telegram rejected the bot token: …`.
 */
export async function checkTelegramToken(apiUrl: string, token: string | undefined): Promise<void> {
  if (apiUrl === '' || token === undefined) return
  const refusal = await ask(`${trimSlashes(apiUrl)}/bot${token}/getMe`).catch(() => undefined)
  if (refusal !== undefined) throw badRequest(`Telegram rejected the bot token: ${refusal}`)
}

/** Why the token is refused; undefined for any other response. */
async function ask(url: string): Promise<string | undefined> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) })
  // Telegram returns 404 for a malformed token.
  if (response.status !== 401 && response.status !== 404) {
    await response.body?.cancel()
    return undefined
  }
  const tooLarge = () => new Error('Telegram sent too much')
  const { ok, description } = JSON.parse(`${await readWhole(response.body ?? [], ANSWER_BYTES, tooLarge)}`)
  return ok === false && typeof description === 'string' ? description.slice(0, 200) : undefined
}
