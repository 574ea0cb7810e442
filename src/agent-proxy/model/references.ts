/** Images, files and hidden instructions of a request, whose tokens its bytes do not bound. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { plainName, valuesOf } from './json-body.ts'

const IMAGE_TOKENS = 16_384
/** The context of large models, which no file exceeds: a small file may have many pages. */
const CONTEXT_TOKENS = 1_048_576
/** Anthropic's instructions for tools, and its definitions of its own tools. */
const TOOL_TOKENS = 2048

const FILES = ['fileid', 'fileurl', 'fileuri', 'filedata', 'videourl']
const DATA_URL = /^data:image\/[\w.+-]+;base64,/

export interface References {
  /** The most tokens of images, files and hidden instructions. */
  tokens: number
  /** The base64 in the request that these tokens stand for. */
  data: readonly string[]
}

export function referencesOf(dialect: Dialect, body: Json): References {
  let images = 0
  let hasFile = false
  const open: unknown[] = [body]
  while (open.length > 0) {
    const one = open.pop()
    if (Array.isArray(one)) for (const item of one) open.push(item)
    if (!isObject(one)) continue
    for (const [key, value] of Object.entries(one)) {
      if (isObject(value) || Array.isArray(value)) open.push(value)
      // OpenAI's `image_url` may be an object with `url`.
      const text = isObject(value) ? value.url : value
      const kind = typeof text === 'string' && kindOf(plainName(key), text, one)
      if (kind === 'image') images++
      if (kind === 'file') hasFile = true
    }
  }
  const hidden = dialect === 'anthropic' && valuesOf(body, ['tools']).length > 0 ? TOOL_TOKENS : 0
  const tokens = images * IMAGE_TOKENS + (hasFile ? CONTEXT_TOKENS : 0) + hidden
  return { tokens, data: partsOf(body).flatMap((part) => dataOf(part) ?? []) }
}
/** The kind of the part of a message that has this text. */
function kindOf(name: string, text: string, part: Json): 'image' | 'file' | undefined {
  if (FILES.includes(name)) return 'file'
  if (name === 'type' && text === 'document') return isText(part.source) ? undefined : 'file'
  if (name === 'mimetype' && !text.startsWith('text/')) return text.startsWith('image/') ? 'image' : 'file'
  return name === 'imageurl' || (name === 'type' && text === 'image') ? 'image' : undefined
}

/** True for the source of a document of Anthropic's that is in the request as text. */
const isText = (source: unknown) => isObject(source) && (source.type === 'text' || source.type === 'content')

/** Parts of messages, and of the results of tools. Elsewhere, a server may take the data of an image for text. */
function partsOf({ messages, input, contents }: Json): Json[] {
  const parts = [messages, input, contents]
    .flatMap(objectsOf)
    .flatMap(({ content, output, parts }) => [content, output, parts].flatMap(objectsOf))
  const results = parts.flatMap(({ type, content }) => (type === 'tool_result' ? objectsOf(content) : []))
  return [...parts, ...results]
}

const objectsOf = (value: unknown): Json[] =>
  Array.isArray(value) ? value.filter((one) => isObject(one)) : []

/** The base64 of an image or file in a part, in each dialect. */
function dataOf(part: Json): string | undefined {
  const { type, image_url: image, source, inlineData, inline_data: inline = inlineData } = part
  const url = type === 'image_url' && isObject(image) ? image.url : type === 'input_image' ? image : undefined
  if (typeof url === 'string' && DATA_URL.test(url)) return url
  const isNamed = type === 'image' || type === 'document'
  const found = isNamed && isObject(source) && source.type === 'base64' ? source : inline
  if (!isObject(found) || typeof found.data !== 'string') return undefined
  const [media = 'text/', ...more] = valuesOf(found, ['mediatype', 'mimetype'])
  return more.length > 0 || `${media}`.startsWith('text/') ? undefined : found.data
}
