// The forms of the documentation page: each shows its request as curl, and sends it to the server it came from.
const key = document.querySelector('#key')
const forms = [...document.querySelectorAll('form')]

for (const place of document.querySelectorAll('.origin')) place.textContent = location.origin

/** What a form asks for: method, path with its query, headers, body. */
function readRequest(form) {
  const { method, path, open } = form.dataset
  const query = new URLSearchParams()
  const headers = {}
  const parts = []
  let filled = path
  for (const field of form.querySelectorAll('[data-in]')) {
    const { name, value } = field
    if (field.dataset.in === 'path')
      filled = filled.replace(`{${name}}`, value ? encodeURIComponent(value) : `{${name}}`)
    else if (value === '') continue
    else if (field.dataset.in === 'part') for (const part of field.files ?? [value]) parts.push([name, part])
    else if (field.dataset.in === 'header') headers[name] = value
    else if ('deep' in field.dataset) for (const [k, v] of pairs(value)) query.append(`${name}[${k}]`, v)
    else query.append(name, value)
  }
  const json = form.elements.body?.value
  if (json !== undefined) headers['Content-Type'] = 'application/json'
  const body = json ?? (parts.length > 0 ? new FormData() : undefined)
  for (const [name, part] of parts) body.append(name, part)
  const search = query.size > 0 ? `?${query}` : ''
  return { method: method.toUpperCase(), path: filled + search, headers, body, needsKey: open === undefined }
}

/** Lines of `key=value`. */
const pairs = (text) =>
  text
    .split('\n')
    .filter((line) => line.includes('='))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`

function asCurl({ method, path, headers, body, needsKey }) {
  const implied = body === undefined ? 'GET' : 'POST'
  const url = location.origin + path
  return [
    `curl ${method === implied ? '' : `-X ${method} `}${/[?&{[]/.test(url) ? quote(url) : url}`,
    ...(needsKey ? ['-H "Authorization: Bearer $BERTH_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...bodyArguments(body),
  ].join(' \\\n  ')
}

function bodyArguments(body) {
  if (body === undefined) return []
  if (typeof body === 'string') return [`-d ${quote(body)}`]
  return [...body].map(([name, part]) => `-F ${quote(`${name}=${part.name ? `@${part.name}` : part}`)}`)
}

/** Sends the request and shows the answer as it arrives: a stream of events has no end to wait for. */
async function send(form, signal) {
  const { method, path, headers, body, needsKey } = readRequest(form)
  if (needsKey) headers.Authorization = `Bearer ${key.value.trim()}`
  const output = form.querySelector('output')
  const status = document.createElement('p')
  const text = document.createElement('pre')
  output.replaceChildren(status, text)
  output.hidden = false
  status.textContent = 'Sending …'
  const start = performance.now()
  try {
    const answer = await fetch(path, { method, headers, body, signal, redirect: 'manual' })
    status.textContent = `${answer.status} ${answer.statusText}, ${Math.round(performance.now() - start)} ms`
    status.classList.toggle('bad', answer.status >= 400)
    text.textContent = [...answer.headers]
      .filter(([name]) =>
        /^(operation-id|location|retry-after|error-code|error-detail|x-request-id|ratelimit-.*)$/.test(name),
      )
      .map(([name, value]) => `${name}: ${value}\n`)
      .join('')
    const followed = answer.headers.get('operation-id')
    if (followed) status.append(', ', followLink(followed))
    text.append('\n')
    const received = text.appendChild(document.createTextNode(''))
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) received.data += chunk
    received.data = pretty(received.data)
  } catch (error) {
    if (signal.aborted) return
    status.textContent = `No answer: ${error.message}`
    status.classList.add('bad')
  }
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** A link to the form that shows an operation, filled in. */
function followLink(id) {
  const link = document.createElement('a')
  link.href = '#streamOperation'
  link.textContent = 'follow it ↓'
  link.addEventListener('click', () => {
    for (const form of forms) {
      if (form.dataset.path.startsWith('/v0/operations/')) form.elements.id.value = id
      showCurl(form)
    }
  })
  return link
}

function showCurl(form) {
  form.querySelector('.curl').textContent = asCurl(readRequest(form))
}

for (const form of forms) {
  showCurl(form)
  form.addEventListener('input', () => showCurl(form))
  let sending
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (sending) return sending.abort()
    if (form.dataset.open === undefined && key.value === '') return key.focus()
    const button = form.querySelector('button')
    sending = new AbortController()
    button.textContent = 'Stop'
    await send(form, sending.signal)
    sending = undefined
    button.textContent = 'Send'
  })
}

/** Opens the operation that the address names. */
function openNamed() {
  const named = document.getElementById(location.hash.slice(1))
  if (named instanceof HTMLDetailsElement) {
    named.open = true
    named.scrollIntoView()
  }
}
addEventListener('hashchange', openNamed)
openNamed()
