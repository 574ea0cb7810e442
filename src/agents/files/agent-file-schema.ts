import { z } from 'zod'
import { like, timestamp, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import { isVisible } from '../../lib/visible.ts'

const MAX_NAME_BYTES = 255

const path = text(4096)

/** `?path=` of a file. */
export const filePath = z.object({
  path: path.min(1).describe('Absolute, or below `/home/node/clawd`.'),
})

/** `?path=` of a folder. */
export const folderPath = z.object({
  path: path.default('').describe('Absolute, or below `/home/node/clawd`, which is the default.'),
})

/** The name of a folder entry, valid on any file system. */
const filename = withExample(text(MAX_NAME_BYTES), 'notes.txt')
  .refine(isVisible, 'must have a visible character')
  .refine((name) => !/[/\\]/.test(name), 'must not contain a slash')
  .refine((name) => !/^\.+$/.test(name), 'must not be dots only')
  .refine((name) => !/\p{Cc}/u.test(name), 'must not contain control characters')
  .refine((name) => Buffer.byteLength(name) <= MAX_NAME_BYTES, `must have at most ${MAX_NAME_BYTES} bytes`)
  .meta({ minLength: 1, format: 'file-name' })

/** `POST A/files/upload` (contract 4.3). */
export const upload = z.object({
  filename,
  contentBase64: like('SGVsbG8K')
    .meta({ contentEncoding: 'base64', format: 'base64' })
    .describe('The content: base64 (RFC 4648, 4) with padding, without a `data:` prefix.'),
})

export const uploaded = z.object({
  path: like('/home/node/clawd/workspace/NOTES.md'),
  filename: like('notes.txt'),
  size: like(12),
})

const entry = z.object({
  name: like('IDENTITY.md'),
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  size: like(12),
  modifiedAt: timestamp,
})

/** agentd's response. */
export const listing = z.object({ entries: z.array(entry), truncated: z.boolean() })

export const folder = listing.extend({ path: like('/home/node/clawd/workspace') })

/** agentd's response to a write. */
export const written = z.object({
  path: like('/home/node/clawd/workspace/NOTES.md'),
  size: like(12),
  version: like('"1835021-12-1795431483485.1"').describe('Its `ETag`, for the next write.'),
})

export const removed = z.object({
  success: z.literal(true),
  path: like('/home/node/clawd/workspace/NOTES.md'),
})
