/** An operation on the API's documentation page: its parameters, its responses, and a form to try it. */
import { fieldList, type Schema, typeName } from './fields.ts'
import { type Html, html, markdown } from './html.ts'

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security?: unknown[]
  parameters: Parameter[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, ResponseObject | { $ref: string }>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header' | 'part'
  required?: boolean | undefined
  description?: string | undefined
  style?: string
  example?: unknown
  schema: Schema
}

interface Content {
  schema: Schema
  example?: unknown
}

export interface ResponseObject {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, Content & { examples?: Record<string, { value: { error: string } }> }>
}

export function operationSection(method: string, path: string, operation: Operation): Html {
  const { operationId: id, summary, description } = operation
  const answers = Object.entries(operation.responses)
  const [mediaType, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const isJson = mediaType === 'application/json'
  return html`
<details class="operation" id="${id}">
  <summary><b class="method ${method}">${method}</b><code>${path}</code><span>${summary}</span></summary>
  <div class="columns">
    <div>
      ${markdown(description)}
      ${body && html`<h4>Body <span>${mediaType}</span></h4>${isJson && fieldList(body.schema)}`}
      ${answers.map(([status, response]) => !('$ref' in response) && responseSection(status, response))}
      <p><small>Errors: ${answers.map(([status, response]) => '$ref' in response && failureLink(status, response))}</small></p>
    </div>
    <form data-method="${method}" data-path="${path}" ${operation.security?.length === 0 ? 'data-open' : ''}>
      <pre class="curl"></pre>
      <button type="button" class="copy">Copy</button>
      ${operation.parameters.map((parameter) => input(id, parameter))}
      ${body && isJson && html`<label class="field">Body <textarea name="body" spellcheck="false">${json(body.example)}</textarea></label>`}
      ${body && !isJson && parts(body.schema).map((part) => input(id, part))}
      <button class="send">Send</button>
      <output hidden></output>
    </form>
  </div>
</details>`
}

function input(
  id: string,
  { name, in: place, required, description, style, example, schema }: Parameter,
): Html {
  const field = `${id}-${name}`
  const attributes = html`id="${field}" name="${name}" data-in="${place}" ${required && 'required'}`
  const isFile =
    place === 'part' && [schema, ...(schema.anyOf ?? [])].some(({ format }) => format === 'binary')
  const control = schema.enum
    ? html`<select ${attributes}>${!required && html`<option></option>`}${schema.enum.map((value) => html`<option>${String(value)}</option>`)}</select>`
    : style === 'deepObject'
      ? html`<textarea ${attributes} data-deep placeholder="key=value, one on each line" rows="1"></textarea>`
      : isFile
        ? html`<input ${attributes} type="file" multiple>`
        : html`<input ${attributes} placeholder="${String(example ?? schema.default ?? '')}" autocomplete="off" spellcheck="false">`
  return html`
<div class="field">
  <label for="${field}"><code>${name}</code> <i>${place}${required && ', required'} · ${typeName(schema)}</i></label>
  ${control}
  ${description && html`<small>${markdown(description)}</small>`}
</div>`
}

/** The parts of a multipart form: files and fields. */
const parts = ({ properties = {}, required }: Schema): Parameter[] =>
  Object.entries(properties).map(([name, schema]) => {
    const { description } = schema
    return { name, in: 'part', required: required?.includes(name), description, schema }
  })

function responseSection(status: string, response: ResponseObject): Html {
  const [mediaType, content] = Object.entries(response.content ?? {})[0] ?? []
  const headers = Object.keys(response.headers ?? {}).filter((name) => !/^(RateLimit|X-Request)/.test(name))
  return html`
<h4>${status} <span>${response.description}</span></h4>
${headers.length > 0 && html`<p><small>Headers: ${headers.map((name) => html`<code>${name}</code> `)}</small></p>`}
${content?.example !== undefined && html`<pre>${json(content.example)}</pre>`}
${content && content.schema.type !== 'string' && html`<details><summary><small>Fields, as ${mediaType}</small></summary>${fieldList(content.schema)}</details>`}`
}

const failureLink = (status: string, { $ref }: { $ref: string }): Html =>
  html`<a href="#error-${$ref.slice($ref.lastIndexOf('/') + 1)}">${status}</a> `

const json = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
