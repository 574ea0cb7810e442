/** The fields of an upload's form. */
import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { groupId, network, optionalName, parseInput } from '../../http/shapes.ts'
import type { Network } from '../../storage/port.ts'
import { expiresAt, NOT_SECONDS } from '../files.ts'
import { keyvalues, olderKeyvalues } from '../keyvalues.ts'

/** The fields that have arrived so far. */
export interface Choices {
  network?: Network
  name?: string
  groupId?: string
  keyvalues?: Record<string, string>
  car?: boolean
  /** The upload becomes an entry of a directory. */
  wrap?: boolean
  cidVersion?: 0 | 1
  expiresAt?: Date
}

/** Reads one field; unknown fields are ignored. @throws ApiError 400 naming the field. */
export type FieldReader = (name: string, value: string) => Choices

const flag = z.enum(['true', 'false'], 'must be true or false')
const cidVersion = z.enum(['v0', 'v1', '0', '1'], 'must be v0 or v1')
const expiry = z
  .string()
  .regex(/^\d+$/, NOT_SECONDS)
  .transform(Number)
  .pipe(expiresAt)
  .transform((seconds) => new Date(seconds * 1000))

/** For the OpenAPI document: the parts of the form. */
export const uploadForm = z.object({
  file: z
    .union([z.file(), z.array(z.file()).min(1)])
    .describe(
      'The file, or several files with paths as file names, which form a folder. If all of them are in one folder, the upload is that folder.',
    ),
  network: network.default('private').describe('Default: `private`.'),
  name: optionalName(255).optional().describe('Default: the name of the file or folder.'),
  group_id: groupId.optional(),
  group: groupId.optional().describe('The same as `group_id`.'),
  keyvalues: z
    .string()
    .meta({ format: 'json-pairs' })
    .optional()
    .describe('Metadata: a JSON object of strings, at most ten pairs.'),
  car: flag.optional().describe('`true`: the file is a CAR, and the upload is the DAG of its single root.'),
  cid_version: cidVersion.optional().describe('Default: `v1`.'),
  expires_at: z
    .string()
    .meta({ format: 'unix-time' })
    .optional()
    .describe('When to delete the file, as Unix time in seconds. Default: never.'),
  streamable: flag.optional().describe('Accepted, without effect: every file can be streamed.'),
})

/** The fields of `POST /v3/files`. */
export const readField: FieldReader = (name, value) => {
  switch (name) {
    case 'network':
      return { network: parseInput(network, value, name) }
    case 'name':
      return { name: parseInput(optionalName(255), value, name) }
    case 'group_id':
    case 'group':
      return { groupId: parseInput(groupId, value, name) }
    case 'keyvalues':
      return { keyvalues: parseInput(keyvalues, unwrap(parseJson(name, value)), name) }
    case 'car':
      return { car: readFlag(name, value) }
    case 'cid_version':
      return { cidVersion: parseInput(cidVersion, value, name).endsWith('0') ? 0 : 1 }
    case 'expires_at':
      return { expiresAt: parseInput(expiry, value, name) }
    case 'streamable':
      readFlag(name, value)
  }
  return {}
}

/** Reads a field that is `true` or `false`. @throws ApiError 400 naming the field. */
export const readFlag = (name: string, value: string): boolean => parseInput(flag, value, name) === 'true'

/** Some clients wrap the pairs as `{"keyvalues": {…}}`. A value is a string, so this cannot be a pair. */
function unwrap(pairs: unknown): unknown {
  const inner = (pairs as { keyvalues?: unknown } | null)?.keyvalues
  return typeof inner === 'object' ? inner : pairs
}

/** The older API's name and metadata for a file. */
export const olderMetadata = z.object({
  name: optionalName(255).nullish(),
  keyvalues: olderKeyvalues.nullish(),
})
/** The older API's upload options. Unknown options are rejected, because the client expects them to have an effect. */
export const olderOptions = z.strictObject({
  groupId: groupId.nullish(),
  cidVersion: z
    .union([z.literal([0, 1]), z.enum(['0', '1'])], 'must be 0 or 1')
    .transform((version) => (Number(version) === 0 ? 0 : 1))
    .nullish(),
  wrapWithDirectory: z
    .boolean()
    .nullish()
    .describe('The upload becomes the entry of a directory, and `IpfsHash` is the directory’s.'),
  customPinPolicy: z.unknown().optional().describe('Accepted, without effect: Berth keeps one copy.'),
})

/** For the OpenAPI document: the parts of the older form. */
export const legacyForm = z.object({
  file: uploadForm.shape.file,
  network: network.optional().describe('Default: `public`.'),
  pinataMetadata: z
    .string()
    .meta({ format: 'json-metadata' })
    .optional()
    .describe('JSON: `{"name": …, "keyvalues": {…}}`.'),
  pinataOptions: z
    .string()
    .meta({ format: 'json-options' })
    .optional()
    .describe('JSON: `{"groupId": …, "cidVersion": 0 or 1, "wrapWithDirectory": true or false}`.'),
})

/** The fields of `POST /pinning/pinFileToIPFS`. */
export const readLegacyField: FieldReader = (name, value) => {
  if (name === 'network') return { network: parseInput(network, value, name) }
  if (name === 'pinataMetadata') {
    const { name: title, keyvalues: pairs } = parseInput(olderMetadata, parseJson(name, value), name)
    return { ...(title && { name: title }), ...(pairs && { keyvalues: pairs }) }
  }
  if (name === 'pinataOptions') {
    const options = parseInput(olderOptions, parseJson(name, value), name)
    const { groupId: group, cidVersion: version, wrapWithDirectory: wrap } = options
    return {
      ...(group && { groupId: group }),
      ...(version != null && { cidVersion: version }),
      ...(wrap && { wrap }),
    }
  }
  return {}
}

/** Parses the JSON of a field. @throws ApiError 400 naming it. */
export function parseJson(name: string, value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw badRequest(`${name}: not valid JSON`)
  }
}
