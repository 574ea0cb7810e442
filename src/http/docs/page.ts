/**
 * The OpenAPI document as a single HTML page: rendered here, with its style and script inline, so that it needs no
 * other request and no other host. It takes less than 100 KB, and is readable without JavaScript.
 * `docs/architecture.md` says why it is our own.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Html, html, markdown } from './html.ts'
import { type Operation, operationSection, type ResponseObject } from './operation.ts'

export interface Document {
  info: { title: string; version: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { responses: Record<string, ResponseObject> }
}

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8')
const style = asset('page.css')
const script = asset('page.js')
const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page's own Content-Security-Policy: its style, its script, requests to this server, and nothing else. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src ${hash(style)}`,
  `script-src ${hash(script)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** @param url how clients reach this server, if known; the script inserts the page's own origin. */
export function renderPage(document: Document, url = 'http://localhost:3000'): string {
  const { info, tags, components } = document
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )
  const groups = tags.map((tag) => ({
    ...tag,
    anchor: tag.name.toLowerCase().replaceAll(' ', '-'),
    operations: operations.filter(({ operation }) => operation.tags.includes(tag.name)),
  }))
  const [lead = '', ...more] = info.description.split('\n\n')
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API</title>
<link rel="icon" href="data:,">
<style>${new Html(style)}</style>
</head>
<body>
<header>
  <a href="#top"><strong>${info.title}</strong> ${info.version}</a>
  <input id="key" type="password" placeholder="API key, to try requests here" aria-label="API key" autocomplete="off">
  <button popovertarget="contents">Routes</button>
</header>
<nav id="contents" popover>
  <input id="find" type="search" placeholder="Find a route" aria-label="Find a route" autocomplete="off">
  <a href="#first-call">First call</a>
  <a href="#how-it-works">How it works</a>
  ${groups.map(
    ({ name, anchor, operations }) => html`
  <details><summary><a href="#${anchor}">${name}</a></summary>${operations.map(
    ({ method, path, operation }) =>
      html`<a href="#${operation.operationId}" title="${path}"><b class="method ${method}">${method}</b>${operation.summary}</a>`,
  )}</details>`,
  )}
  <a href="#errors">Errors</a>
</nav>
<main id="top">
  <h1>${info.title} API</h1>
  ${markdown(lead)}
  <p>For programs it is at <a href="/openapi.json">/openapi.json</a>, as OpenAPI 3.1.</p>
  ${firstCall(url)}
  <section id="how-it-works">
    <h2>How it works</h2>
    ${markdown(more.join('\n\n'))}
  </section>
  ${groups.map(
    ({ name, anchor, description, operations }) => html`
  <section id="${anchor}">
    <h2>${name}</h2>
    ${markdown(description)}
    ${operations.map(({ method, path, operation }) => operationSection(method, path, operation))}
  </section>`,
  )}
  <section id="errors">
    <h2>Errors</h2>
    <p>The <code>Error-Code</code> header, and the message in the body.</p>
    ${Object.entries(components.responses).map(([status, answer]) => errorSection(status, answer))}
  </section>
</main>
<script>${new Html(script)}</script>
</body>
</html>`.text
}

/** The main use case, from a shell. */
function firstCall(url: string): Html {
  return html`
<section id="first-call">
  <h2>First call</h2>
  <p>Pin something, and wait for it. The key is the one that <code>npm start</code> printed; the CID carries its few bytes in itself.</p>
  <pre>export BERTH_KEY=…

curl <span class="origin">${url}</span>/v3/files/public/pin_by_cid \\
  -H "Authorization: Bearer $BERTH_KEY" -H 'Prefer: wait=60' \\
  -d '{"cid": "bafkqaekimvwgy3zamzzg63jaijsxe5dibi"}'</pre>
  <p>Then see it among the files:</p>
  <pre>curl <span class="origin">${url}</span>/v3/files/public -H "Authorization: Bearer $BERTH_KEY"</pre>
</section>`
}

function errorSection(status: string, { description, content }: ResponseObject): Html {
  const examples = Object.entries(content?.['application/json']?.examples ?? {})
  return html`
<div id="error-${status}">
  <h4>${status} <span>${description}</span></h4>
  ${examples.map(([code, { value }]) => html`<div class="field"><code>${code}</code> <small>${value.error}</small></div>`)}
</div>`
}
