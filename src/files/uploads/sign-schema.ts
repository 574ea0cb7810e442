import { z } from 'zod'
import { EXAMPLE_CID, like, withExample } from '../../http/fields.ts'
import { groupId, network, optionalName, text } from '../../http/shapes.ts'
import { keyvalues } from '../keyvalues.ts'

/** A signed URL is valid for at most a year. */
const MAX_EXPIRES_S = 31_536_000
/** The end of the year 9999: a larger number was meant in milliseconds. */
const MAX_UNIX_S = 253_402_300_799
const MAX_TYPES = 50
const TYPE = /^(directory|(\*|[\w.+-]+)\/(\*|[\w.+-]+))$/i

const unixSeconds = 'must be Unix time in seconds'
const nowSeconds = () => Math.floor(Date.now() / 1000)

const period = {
  date: z
    .int(unixSeconds)
    .min(0, unixSeconds)
    .max(MAX_UNIX_S, unixSeconds)
    .optional()
    .transform((date) => date ?? nowSeconds())
    .describe('Start of validity, as Unix time in seconds. Default: now.'),
  expires: withExample(z.int('must be a whole number of seconds'), 60)
    .min(1, 'must be at least 1')
    .max(MAX_EXPIRES_S, `must be at most ${MAX_EXPIRES_S}`)
    .describe('For how many seconds after `date` it is valid.'),
}
const EXAMPLE_URL = `https://catalogues.gateway.localhost/files/${EXAMPLE_CID}`
const address = like(EXAMPLE_URL)
  .max(4096, 'must have at most 4096 characters')
  .meta({ format: 'private-file' })
  .describe(
    "A private file's URL: `https://<gateway>/files/<cid>`, optionally with a path or query that gateways support.",
  )
const method = z.literal('GET', 'must be GET').describe('The HTTP method that the link allows.')

interface Period {
  date: number
  expires: number
}
const isAhead = ({ date, expires }: Period) => date + expires > nowSeconds()
const IN_THE_PAST = { path: ['expires'], error: 'is over already: date and expires are in the past' }

/** `POST /v3/files/private/download_link`. */
export const linkRequest = z.object({ url: address, ...period, method }).refine(isAhead, IN_THE_PAST)
export type LinkRequest = z.output<typeof linkRequest>

/** `POST /v3/files/sign`: with `url` the same as above, without it a URL for uploads. */
export const signRequest = z
  .object({
    ...period,
    url: address.optional(),
    method: method.optional(),
    network: network
      .default('private')
      .describe('The network of every file that is uploaded through the URL.'),
    max_file_size: z
      .int('must be a whole number of bytes')
      .min(1, 'must be at least 1')
      .nullish()
      .describe('Maximum bytes of an upload.'),
    allow_mime_types: z
      .array(text(255).regex(TYPE, 'must be as image/png, image/* or directory'))
      .min(1, 'must not be empty')
      .max(MAX_TYPES)
      .nullish()
      .describe('The types that may be uploaded, with optional wildcards; `directory` for folders.'),
    group_id: groupId
      .nullish()
      .describe('The group of the uploaded files. If omitted, the upload may name one.'),
    filename: optionalName(255).nullish().describe('The name of the uploaded file; overrides the upload’s.'),
    keyvalues: keyvalues.nullish().describe('Metadata of the uploaded file; overrides the upload’s.'),
    streamable: z.boolean().optional().describe('Accepted, without effect: every file can be streamed.'),
  })
  .meta({
    examples: [{ expires: 60, network: 'public', max_file_size: 5_000_000, allow_mime_types: ['image/*'] }],
  })
  .refine(isAhead, IN_THE_PAST)
export type SignRequest = z.output<typeof signRequest>

export const signedUrl = z.object({
  data: like(
    `${EXAMPLE_URL}?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…`,
  ).describe('The signed URL.'),
})
