import type { CID } from 'multiformats/cid'
import { escapeHtml } from '../../http/docs/html.ts'
import { formatBytes } from '../../lib/disk.ts'
import { nameToUrl, showName } from '../../storage/dag/names.ts'
import type { DirectoryEntry, Storage } from '../../storage/port.ts'
import { PAGE_END, PAGE_HEADERS, pageHead } from './page.ts'
import type { Representation } from './respond.ts'

/**
 * Characters of rows that are sent at a time: a directory may have millions of rows, and each contains the path to it.
 */
const CHARACTERS = 65_536
/** Longest name that is shown completely, and linked: a name may be as large as a block, but no URL is. */
const MAX_NAME = 4096
/** Maximum linked names of a path: each link contains all previous names. */
const LINKED_NAMES = 64

export interface ListingDetails {
  /** `ipfs` or `files`. */
  root: string
  /** The names after the CID of the path. */
  names: string[]
  /** Null if nothing can be linked. */
  links: ListingLinks | null
}

interface ListingLinks {
  /** The URL of the directory, without a trailing slash. */
  here: string
  /** The URL below which CIDs are served by their paths. */
  paths: string
  /** The query of every link. */
  query: URLSearchParams
  /** Whether each entry also has a URL by its own CID. */
  byCid: boolean
}

/** The page of a directory. */
export function listingRepresentation(
  storage: Storage,
  cid: CID,
  { root, names, links }: ListingDetails,
): Representation {
  return {
    etag: `"DirIndex-2${links?.byCid ? 'c' : ''}_CID-${cid}"`,
    headers: PAGE_HEADERS,
    async *read(_from, _to, signal) {
      yield Buffer.from(`${pageHead(`Index of /${[root, ...names.map(showName)].join('/')}`)}
<h1>Index of /${root}/${breadcrumbs(names, links)}</h1>
<table><thead><tr><th scope="col">Name${links?.byCid ? '<th scope="col">CID' : ''}<th scope="col">Size<tbody>
`)
      if (names.length > 1 && links) {
        const up = href(`${links.here}/..`, links.query)
        yield Buffer.from(`<tr><td><a href="${up}">..</a>${links.byCid ? '<td>' : ''}<td>\n`)
      }
      let rows = ''
      for await (const entry of storage.ls(cid, { signal })) {
        rows += row(entry, links)
        if (rows.length < CHARACTERS) continue
        yield Buffer.from(rows)
        rows = ''
      }
      yield Buffer.from(`${rows}</table>${PAGE_END}`)
    },
  }
}

/** The path to the directory, in which each name links to its place, unless there are very many. */
function breadcrumbs(names: string[], links: ListingLinks | null): string {
  const all = names.map((name, index) => {
    if (!links || names.length > LINKED_NAMES) return escapeHtml(showName(name))
    const path = names
      .slice(0, index + 1)
      .map(nameToUrl)
      .join('/')
    return `<a href="${href(`${links.paths}/${path}`, links.query)}">${escapeHtml(showName(name))}</a>`
  })
  return all.join('/')
}

function row({ name, cid, size }: DirectoryEntry, links: ListingLinks | null): string {
  if (name.length > MAX_NAME) {
    const beginning = name.slice(0, MAX_NAME)
    const cut = escapeHtml(name.isWellFormed() ? beginning.toWellFormed() : showName(beginning))
    return `<tr><td><bdi>${cut}…</bdi>${links?.byCid ? `<td>${cidLink(cid, '', links)}` : ''}<td>${formatBytes(size)}\n`
  }
  const label = escapeHtml(showName(name))
  if (!links) return `<tr><td><bdi>${label}</bdi><td>${formatBytes(size)}\n`
  const encoded = nameToUrl(name)
  const named = `<bdi><a href="${href(`${links.here}/${encoded}`, links.query)}">${label}</a></bdi>`
  return `<tr><td>${named}${links.byCid ? `<td>${cidLink(cid, encoded, links)}` : ''}<td>${formatBytes(size)}\n`
}

/** The link that other gateways have too, with which scripts find CIDs in such pages. */
function cidLink(cid: CID, filename: string, { paths, query }: ListingLinks): string {
  const address = href(`${paths}/${cid}`, new URLSearchParams([['filename', filename], ...query]))
  const text = `${cid}`
  return `<a class="ipfs-hash" translate="no" href="${address}">${text.slice(0, 4)}…${text.slice(-4)}</a>`
}

function href(path: string, query: URLSearchParams): string {
  return escapeHtml(query.size > 0 ? `${path}?${query}` : path)
}
