/** Placeholders: what sandboxes have in place of a brokered secret's value. They look like it, and are not secret. */
import { randomInt } from 'node:crypto'

/**
 * Beginnings that programs check, and that tell nothing: the vendor, and the kind of key. Other beginnings are random
 * like the rest, because they may belong to the secret.
 */
const PREFIXES = [
  ...[
    'sk-',
    'sk-proj-',
    'sk-svcacct-',
    'sk-admin-',
    'sk-ant-',
    'sk-ant-api03-',
    'sk-or-v1-',
    'sk-lf-',
    'pk-lf-',
  ],
  ...['gsk_', 'hf_', 'r8_', 'xai-', 'pplx-', 'nvapi-', 'tvly-', 'tvly-dev-', 'tvly-prod-', 'fc-', 'jina_'],
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'gldt-', 'glptt-', 'glrt-', 'glcbt-'],
  ...['xoxb-', 'xoxp-', 'xoxa-', 'xoxe-', 'xoxo-', 'xoxr-', 'xoxs-', 'xapp-'],
  ...['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'],
  ...['npm_', 'pypi-', 'dckr_pat_', 'dckr_oat_', 'dop_v1_', 'doo_v1_', 'dor_v1_'],
  ...['shpat_', 'shpca_', 'shppa_', 'shpss_', 'lin_api_', 'lin_oauth_', 'ntn_', 'secret_', 'figd_', 're_'],
]
/** Fewer random characters could be guessed, and could occur elsewhere in a request. */
const MIN_RANDOM = 8
const FALLBACK_LENGTH = 24

const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LOWER = UPPER.toLowerCase()
const DIGITS = '0123456789'
const CLASSES = [UPPER, LOWER, DIGITS]

/** A placeholder for a value: of its length and shape, unless that leaves too few random characters. */
export function makePlaceholder(value: string): string {
  const shape = isShapeable(value) ? value : `a${'0a'.repeat(FALLBACK_LENGTH)}`.slice(0, FALLBACK_LENGTH)
  for (;;) {
    const placeholder = randomLike(shape)
    if (placeholder !== value) return placeholder
  }
}

/** Whether an earlier placeholder has the shape of a value, so that it can stand for it. */
export function isPlaceholderFor(placeholder: string, value: string): boolean {
  if (placeholder === value) return false
  if (!isShapeable(value)) return placeholder.length === FALLBACK_LENGTH && isShapeable(placeholder)
  const start = prefixOf(value).length
  return (
    placeholder.length === value.length &&
    placeholder.startsWith(prefixOf(value)) &&
    Array.from(value).every((c, i) => i < start || classOf(c) === classOf(placeholder[i] ?? ''))
  )
}

const prefixOf = (value: string) =>
  PREFIXES.filter((prefix) => value.startsWith(prefix)).reduce((a, b) => (b.length > a.length ? b : a), '')

/** The characters that a class of characters stands for; the character itself if it belongs to none. */
const classOf = (character: string) => CLASSES.find((one) => one.includes(character)) ?? character

function isShapeable(value: string): boolean {
  const rest = value.slice(prefixOf(value).length)
  return (rest.match(/[A-Za-z0-9]/g)?.length ?? 0) >= MIN_RANDOM
}

function randomLike(value: string): string {
  const prefix = prefixOf(value)
  const rest = Array.from(value.slice(prefix.length), (character) => {
    const choice = classOf(character)
    return choice[randomInt(choice.length)]
  })
  return prefix + rest.join('')
}
