// The documentation page: finds routes, shows the request of each form as curl, and sends it to this server.
const key = document.querySelector('#key')
const find = document.querySelector('#find')
const nav = document.querySelector('nav')

for (const place of document.querySelectorAll('.origin')) place.textContent = location.origin

/** The request that a form describes: method, path with its query, headers, body. */
function readRequest(form) {
  const { method, path, open } = form.dataset
  const query = new URLSearchParams()
  const headers = {}
  const parts = new FormData()
  let filled = path
  for (const field of form.querySelectorAll('[data-in]')) {
    const { name, value } = field
    if (field.dataset.in === 'path')
      filled = filled.replace(`{${name}}`, value ? encodeURIComponent(value) : `{${name}}`)
    else if (field.type === 'file')
      for (const file of value ? field.files : [new File([], 'cat.jpg')]) parts.append(name, file)
    else if (value === '') continue
    else if (field.dataset.in === 'part') parts.append(name, value)
    else if (field.dataset.in === 'header') headers[name] = value
    else if ('deep' in field.dataset)
      for (const [, k, v] of value.matchAll(/^(.*?)=(.*)$/gm)) query.append(`${name}[${k}]`, v)
    else query.append(name, value)
  }
  const json = form.elements.body?.value
  if (json !== undefined) headers['Content-Type'] = 'application/json'
  const body = json ?? ([...parts].length > 0 ? parts : undefined)
  const search = query.size > 0 ? `?${query}` : ''
  return { method: method.toUpperCase(), path: filled + search, headers, body, needsKey: open === undefined }
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`

function asCurl({ method, path, headers, body, needsKey }) {
  const choice = { GET: '', HEAD: '--head ' }[method] ?? `-X ${method} `
  const url = location.origin + path
  return [
    `curl ${choice}${/[?&{[]/.test(url) ? quote(url) : url}`,
    ...(needsKey ? ['-H "Authorization: Bearer $BERTH_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(typeof body === 'string'
      ? [`-d ${quote(body)}`]
      : [...(body ?? [])].map(
          ([name, part]) => `-F ${quote(`${name}=${part.name ? `@${part.name}` : part}`)}`,
        )),
  ].join(' \\\n  ')
}

function showCurl(form) {
  form.querySelector('.curl').textContent = asCurl(readRequest(form))
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
    const shown = /^(operation-id|location|retry-after|error-code|error-detail|x-request-id|ratelimit-.*)$/
    for (const [name, value] of answer.headers) if (shown.test(name)) text.append(`${name}: ${value}\n`)
    const operation = answer.headers.get('operation-id')
    if (operation) status.append(', ', followLink(operation))
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

/** A link to the form that streams an operation; all forms about operations are filled in. */
function followLink(id) {
  for (const form of document.querySelectorAll('form[data-path^="/v0/operations/"]')) {
    form.elements.id.value = id
    showCurl(form)
  }
  const link = document.createElement('a')
  link.href = '#streamOperation'
  link.textContent = 'follow it'
  return link
}

for (const form of document.forms) {
  showCurl(form)
  form.addEventListener('input', () => showCurl(form))
  const button = form.querySelector('.send')
  const copy = form.querySelector('.copy')
  let sending
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (sending) return sending.abort()
    if (form.dataset.open === undefined && key.value === '') return key.focus()
    sending = new AbortController()
    button.textContent = 'Stop'
    await send(form, sending.signal)
    sending = undefined
    button.textContent = 'Send'
  })
  // Browsers have no clipboard for pages that came by plain HTTP from another machine.
  copy.hidden = !navigator.clipboard
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(form.querySelector('.curl').textContent)
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = 'Copy'), 1500)
  })
}

/** Leaves the routes in the contents that have every word of the search in their method, path or summary. */
find.addEventListener('input', () => {
  const words = find.value.toLowerCase().split(/\s+/)
  for (const group of nav.querySelectorAll('details')) {
    const links = [...group.querySelectorAll(':scope > a')]
    for (const link of links) {
      const text = `${link.textContent} ${link.title} ${group.firstChild.textContent}`.toLowerCase()
      link.hidden = !words.every((word) => text.includes(word))
    }
    group.hidden = links.every((link) => link.hidden)
    group.open = find.value !== ''
  }
  markNamed()
})
find.addEventListener('keydown', ({ key }) => {
  if (key === 'Enter') nav.querySelector('details:not([hidden]) > a:not([hidden])')?.click()
})

/** Marks in the contents what the address names. */
function markNamed() {
  nav.querySelector('[aria-current]')?.removeAttribute('aria-current')
  const link = [...nav.querySelectorAll('a')].find(({ hash }) => hash === location.hash)
  link?.setAttribute('aria-current', 'true')
  const group = link?.closest('details')
  if (group) group.open = true
  link?.scrollIntoView({ block: 'nearest' })
}

/** Opens the operation that the address names. */
function openNamed() {
  const named = document.getElementById(location.hash.slice(1))
  if (named instanceof HTMLDetailsElement) {
    named.open = true
    named.scrollIntoView()
  }
  markNamed()
}

addEventListener('hashchange', openNamed)
openNamed()
nav.addEventListener('click', ({ target }) => target.closest('a') && nav.hidePopover())
