/** What an owner says about an agent, when it is created and later (contract 7.1, compatibility 2.3 and 2.4). */
import { text } from '../http/shapes.ts'

/**
 * A name stands in pages, in Markdown, in environment variables and in lists: no control characters, no line
 * breaks, nothing that turns the direction of text, and none of these.
 */
const BANNED = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069<>{}\\/|"$`]/u
export const BANNED_IN_NAMES = '< > { } \\ / | " $ `'

export const agentName = text(100)
  .trim()
  .min(1, 'must not be empty')
  .refine((name) => !BANNED.test(name), `must not contain control characters or any of ${BANNED_IN_NAMES}`)
  .describe(
    'Any text without line breaks, other control characters, marks of text direction, and ' +
      `${[...BANNED_IN_NAMES.replaceAll(' ', '')].map((char) => (char === '`' ? 'the backtick' : `\`${char}\``)).join(' ')}.`,
  )

/** What may be said beside the name; null says nothing. */
export const agentDetails = {
  description: text(10_000).nullable().optional(),
  vibe: text(200).nullable().optional().describe('Its character, in a few words.'),
  emoji: text(32).nullable().optional(),
}
