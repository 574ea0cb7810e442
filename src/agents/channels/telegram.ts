/** Asking Telegram whether a bot token is one of its own. */
import { badRequest } from '../../errors.ts'
import { readWhole } from '../../lib/read.ts'
import { trimSlashes } from '../../lib/slashes.ts'

const ANSWER_MS = 5000
const ANSWER_BYTES = 65_536

/**
 * Asks `getMe` of the Bot API. Only Telegram's own refusal counts: where it cannot be reached from here, or does not
 * answer in time, the token is taken as it is.
 * @param apiUrl BERTH_TELEGRAM_URL; empty where nobody is to be asked.
 * @param token undefined where none was given.
 * @throws ApiError 400 `Telegram rejected the bot token: …`.
 */
export async function checkTelegramToken(apiUrl: string, token: string | undefined): Promise<void> {
  if (apiUrl === '' || token === undefined) return
  const refusal = await ask(`${trimSlashes(apiUrl)}/bot${token}/getMe`).catch(() => undefined)
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
  const tooLarge = () => new Error('Telegram answers too much')
  const { ok, description } = JSON.parse(`${await readWhole(response.body ?? [], ANSWER_BYTES, tooLarge)}`)
  return ok === false && typeof description === 'string' ? description.slice(0, 200) : undefined
}
