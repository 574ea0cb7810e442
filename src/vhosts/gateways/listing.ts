import type { CID } from 'multiformats/cid'
import { formatBytes } from '../../lib/disk.ts'
import type { DirectoryEntry, Storage } from '../../storage/port.ts'
import type { Representation } from './respond.ts'

/** Rows that are sent at a time: a directory may have millions. */
const ROWS = 200
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
const STYLE = `:root{color-scheme:light dark}
body{font:15px/1.6 system-ui,sans-serif;max-width:56rem;margin:3rem auto;padding:0 1.5rem}
h1{font-size:1.15rem;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse}
th{text-align:left;font-weight:600}
th,td{padding:.35rem .5rem;border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)}
td:first-child{overflow-wrap:anywhere}
th:last-child,td:last-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
a{text-decoration:none}a:hover{text-decoration:underline}`

export interface ListingDetails {
  /** The path as people read it. */
  title: string
  /** The query string of links to the entries; null where an entry cannot be linked to. */
  links: string | null
  hasParent: boolean
}

/** The page of a directory. It works without scripts, and loads nothing. */
export function listingRepresentation(
  storage: Storage,
  cid: CID,
  { title, links, hasParent }: ListingDetails,
): Representation {
  return {
    etag: `W/"${cid}.listing"`,
    headers: { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY },
    async *read(_from, _to, signal) {
      const heading = `Index of ${escapeHtml(title)}`
      yield Buffer.from(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${heading}</title><style>${STYLE}</style>
<h1>${heading}</h1>
<table><thead><tr><th scope="col">Name<th scope="col">Size<tbody>
`)
      if (hasParent && links !== null)
        yield Buffer.from(`<tr><td><a href="../${escapeHtml(links)}">..</a><td>\n`)
      let rows: string[] = []
      for await (const entry of storage.ls(cid, { signal })) {
        rows.push(row(entry, links))
        if (rows.length === ROWS) {
          yield Buffer.from(rows.join(''))
          rows = []
        }
      }
      yield Buffer.from(`${rows.join('')}</table></html>\n`)
    },
  }
}

function row({ name, size }: DirectoryEntry, links: string | null): string {
  const label = `<bdi>${escapeHtml(name)}</bdi>`
  // `./` keeps a name such as `javascript:…` from being read as an address.
  const href = links === null ? null : escapeHtml(`./${encodeURIComponent(name)}${links}`)
  return `<tr><td>${href === null ? label : `<a href="${href}">${label}</a>`}<td>${formatBytes(size)}\n`
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
