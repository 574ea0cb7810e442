/**
 * Shapes of keys in file contents. Berth has its own list because agentd has no packages (see the README). Each
 * expression takes linear time, and is literal enough not to match prose and code by chance.
 */

/** Each shape fits into this many characters; pieces of a file overlap by them. */
export const SHAPE_CHARS = 256

const SHAPES: [what: string, shape: RegExp][] = [
  // A program that searches for keys has the header in quotes.
  ['a private key', /-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}(?![-"'`])/],
  ['a private key', /PuTTY-User-Key-File-\d/],
  ['a private key', /AGE-SECRET-KEY-1[0-9A-Z]{20}/],
  ['a key of OpenAI, Anthropic or OpenRouter', /\bsk-(?:proj|svcacct|admin|ant|or|lf)-[\w-]{16}/],
  ['a key of OpenAI or DeepSeek', /\bsk-[A-Za-z0-9]{32}/],
  ['a key of Groq, xAI, Perplexity or Replicate', /\b(?:gsk_|xai-|pplx-|r8_)[A-Za-z0-9]{30}/],
  ['a key of Tavily', /\btvly-(?:dev-|prod-)?[A-Za-z0-9]{20}/],
  ['a token of Hugging Face', /\bhf_[A-Za-z0-9]{30}/],
  ['a key of Google', /\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{20}|ya29\.[\w-]{20})/],
  // AWS ends its documentation keys with EXAMPLE.
  ['a key of AWS', /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b(?<!EXAMPLE)/],
  [
    'a key of AWS',
    /(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[sS]ecretAccessKey)["' ]{0,3}[:=]["' ]{0,3}[\w/+]{40}(?<!EXAMPLEKEY)/,
  ],
  ['a key of Azure', /\bAccountKey=[A-Za-z0-9+/]{80}/],
  ['a token of GitHub', /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})/],
  ['a token of GitLab', /\bgl(?:pat|ptt|dt|rt|cbt)-[\w-]{20}/],
  ['a token of Slack', /\b(?:xox[abeoprs]-[\w-]{10}|xapp-\d-[\w-]{10})/],
  ['a webhook of Slack', /hooks\.slack\.com\/(?:services|workflows)\/[A-Z]\w{6}/],
  ['a token of Telegram', /\b\d{8,10}:AA[\w-]{33}/],
  ['a token of Discord', /\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27}/],
  ['a key of Stripe', /\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16}|whsec_[A-Za-z0-9+/]{24})/],
  ['a token of npm', /\bnpm_[A-Za-z0-9]{36}|\/:_(?:authToken|auth|password)=[\w+/-]{8}/],
  ['a token of PyPI', /\bpypi-AgE[\w-]{20}/],
  ['a token of Docker', /\bdckr_(?:pat|oat)_[\w-]{20}/],
  ['a key of SendGrid', /\bSG\.[\w-]{22}\.[\w-]{43}/],
  ['a key of Twilio', /\bSK[0-9a-f]{32}\b/],
  ['a token of DigitalOcean', /\bdo[oprt]_v1_[0-9a-f]{64}/],
  ['a token of Shopify', /\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}/],
  [
    'a token of Atlassian, Linear or Notion',
    /\b(?:ATATT3[\w-]{20}|lin_api_[A-Za-z0-9]{30}|ntn_[A-Za-z0-9]{40})/,
  ],
  ['a token of Vault', /\bhv[sb]\.[\w-]{24}/],
]

/** All of them: most texts contain none, and are read only once. */
const ANY = new RegExp(SHAPES.map(([, { source }]) => source).join('|'))

/** The kind of the first key in a text, for people; undefined if it has none. */
export const keyIn = (text: string): string | undefined =>
  ANY.test(text) ? SHAPES.find(([, shape]) => shape.test(text))?.[0] : undefined
