/** One operation of the OpenAPI document: what it takes, what it answers, and a form to try it. */
import { fieldTable, type Schema, typeName } from './fields.ts'
import { type Html, html, markdown } from './html.ts'

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security?: unknown[]
  parameters: Parameter[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, Answer | { $ref: string }>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  style?: string
  example?: unknown
  schema: Schema
}

interface Content {
  schema: Schema
  example?: unknown
}

export interface Answer {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, Content & { examples?: Record<string, { value: { error: string } }> }>
}

/** Finds the answer of failure that a `$ref` names. */
export type Resolve = (reference: { $ref: string }) => Answer

export function operationSection(method: string, path: string, operation: Operation, resolve: Resolve): Html {
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
      ${body && html`<h4>Body${!isJson && html` <span>${mediaType}</span>`}</h4>${fieldTable(body.schema)}`}
      ${answers.map(([status, answer]) => !('$ref' in answer) && answerSection(status, answer))}
      <p class="failures">Errors: ${answers.map(([status, answer]) => '$ref' in answer && failureLink(status, resolve(answer)))}</p>
    </div>
    <form data-method="${method}" data-path="${path}" ${operation.security?.length === 0 ? 'data-open' : ''}>
      <pre class="curl"></pre>
      ${operation.parameters.map((parameter) => input(id, parameter))}
      ${body && isJson && html`<label>Body <textarea name="body" spellcheck="false">${json(body.example)}</textarea></label>`}
      ${body && !isJson && Object.entries(body.schema.properties ?? {}).map(([name, schema]) => part(id, name, schema))}
      <button>Send</button>
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
  const attributes = html`id="${field}" name="${name}" data-in="${place}" ${required ? 'required' : ''}`
  const hint = String(example ?? schema.default ?? '')
  const control = schema.enum
    ? html`<select ${attributes}><option></option>${schema.enum.map((value) => html`<option>${String(value)}</option>`)}</select>`
    : style === 'deepObject'
      ? html`<textarea ${attributes} data-deep placeholder="key=value, one on each line" rows="1"></textarea>`
      : html`<input ${attributes} placeholder="${hint}" autocomplete="off" spellcheck="false">`
  return html`
<div class="parameter">
  <label for="${field}"><code>${name}</code> <i>${place}${required && ', required'} · ${typeName(schema)}</i></label>
  ${control}
  ${description && html`<small>${markdown(description)}</small>`}
</div>`
}

/** A part of a multipart form: a file, or a field. */
function part(id: string, name: string, schema: Schema): Html {
  const field = `${id}-${name}`
  const isFile = [schema, ...(schema.anyOf ?? [])].some(({ format }) => format === 'binary')
  return html`
<div class="parameter">
  <label for="${field}"><code>${name}</code> <i>part · ${typeName(schema)}</i></label>
  <input id="${field}" name="${name}" data-in="part" autocomplete="off" ${isFile && html`type="file" multiple`}>
</div>`
}

function answerSection(status: string, answer: Answer): Html {
  const [mediaType, content] = Object.entries(answer.content ?? {})[0] ?? []
  const headers = Object.keys(answer.headers ?? {}).filter((name) => !/^(RateLimit|X-Request)/.test(name))
  return html`
<h4>${status} <span>${answer.description}</span></h4>
${headers.length > 0 && html`<p class="headers">Headers: ${headers.map((name) => html`<code>${name}</code> `)}</p>`}
${content?.example !== undefined && html`<pre>${json(content.example)}</pre>`}
${content && content.schema.type !== 'string' && html`<details class="fields"><summary>Fields, as ${mediaType}</summary>${fieldTable(content.schema)}</details>`}`
}

const failureLink = (status: string, { description }: Answer): Html =>
  html`<a href="#error-${status}" title="${description}">${status}</a> `

const json = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
