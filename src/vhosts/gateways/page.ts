/** Pages that gateways generate: they work without scripts, and load nothing. */
import { escapeHtml } from '../../http/docs/html.ts'

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
const STYLE = `:root{color-scheme:light dark}
body{font:15px/1.6 system-ui,sans-serif;max-width:56rem;margin:3rem auto;padding:0 1.5rem}
h1{font-size:1.15rem;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse}
th{text-align:left;font-weight:600}
th,td{padding:.35rem .5rem;border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)}
td:first-child{overflow-wrap:anywhere}
th:last-child,td:last-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
a{text-decoration:none}a:hover{text-decoration:underline}`

export const PAGE_HEADERS = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY }

/** The beginning of a page. @param title as text. */
export const pageHead = (title: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body>
`

export const PAGE_END = '</body></html>\n'

/** A whole page. @param body as HTML. */
export const page = (title: string, body: string): string => `${pageHead(title)}${body}${PAGE_END}`
