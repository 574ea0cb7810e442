import { z } from 'zod'
import { network, optionalName, text } from '../../http/shapes.ts'
import { keyvalues } from '../keyvalues.ts'

/** A signed URL is good for at most a year. */
const MAX_EXPIRES_S = 31_536_000
/** The end of the year 9999: whatever is later was meant in milliseconds. */
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
    .describe('From when it is good, in seconds of Unix time; now, if left out.'),
  expires: z
    .int('must be a whole number of seconds')
    .min(1, 'must be at least 1')
    .max(MAX_EXPIRES_S, `must be at most ${MAX_EXPIRES_S}`)
    .describe('For how many seconds from `date` it is good.'),
}
const address = z
  .string()
  .max(4096, 'must have at most 4096 characters')
  .meta({ format: 'private-file' })
  .describe("A private file's address: `https://<gateway>/files/<cid>`, and what a gateway takes after it.")
const method = z.literal('GET', 'must be GET').describe('What the link is good for.')

interface Period {
  date: number
  expires: number
}
const isAhead = ({ date, expires }: Period) => date + expires > nowSeconds()
const IN_THE_PAST = { path: ['expires'], error: 'is over already: date and expires are in the past' }

/** `POST /v3/files/private/download_link`. */
export const linkRequest = z.object({ url: address, ...period, method }).refine(isAhead, IN_THE_PAST)
export type LinkRequest = z.output<typeof linkRequest>

/** `POST /v3/files/sign`: with `url` the same, without it a URL for uploads. */
export const signRequest = z
  .object({
    ...period,
    url: address.optional(),
    method: method.optional(),
    network: network.default('private').describe('The network of every file that is uploaded by the URL.'),
    max_file_size: z
      .int('must be a whole number of bytes')
      .min(1, 'must be at least 1')
      .nullish()
      .describe('Most bytes of an upload.'),
    allow_mime_types: z
      .array(text(255).regex(TYPE, 'must be as image/png, image/* or directory'))
      .min(1, 'must not be empty')
      .max(MAX_TYPES, `must have at most ${MAX_TYPES} entries`)
      .nullish()
      .describe('The types that may be uploaded, wildcards included; `directory` for folders.'),
    group_id: z
      .uuid('must be a UUID')
      .toLowerCase()
      .nullish()
      .describe('The group of what is uploaded; if left out, the upload may name one.'),
    filename: optionalName(255).nullish().describe('The name of what is uploaded, whatever the upload says.'),
    keyvalues: keyvalues.nullish().describe('Metadata of what is uploaded, whatever the upload says.'),
    streamable: z.boolean().optional().describe('Accepted; every file can be streamed.'),
  })
  .refine(isAhead, IN_THE_PAST)
export type SignRequest = z.output<typeof signRequest>

export const signedUrl = z.object({ data: z.string().describe('The signed URL.') })
