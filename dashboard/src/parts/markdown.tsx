import type { ReactNode } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { texts } from '../texts.ts'

const SAFE = /^(https?|mailto):/i

function Away({ href, children }: { href?: string | undefined; children: ReactNode }) {
  if (!href || !SAFE.test(href)) return <span>{children}</span>
  return (
    <a
      href={href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="break-words text-accent underline underline-offset-2"
    >
      {children}
    </a>
  )
}

/** Headings of a text must not become headings of the page. */
const headingOf =
  (size: string) =>
  ({ children }: { children?: ReactNode }) => <p className={`font-semibold ${size}`}>{children}</p>
const Heading = headingOf('')

const components: Components = {
  a: ({ href, children }) => <Away href={href}>{children}</Away>,
  // Fetching the image would tell its author that the text was read, and from where.
  img: ({ src, alt }) => (
    <Away href={typeof src === 'string' ? src : undefined}>{texts.chat.image(alt ?? '')}</Away>
  ),
  h1: headingOf('text-lg'),
  h2: headingOf('text-base'),
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  pre: ({ children }) => (
    <pre
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
      tabIndex={0}
      className="overflow-x-auto rounded-lg border border-line bg-page p-3 text-xs leading-relaxed"
    >
      {children}
    </pre>
  ),
  table: ({ children }) => (
    <div
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
      tabIndex={0}
      className="overflow-x-auto"
    >
      <table className="border-collapse text-sm [&_td]:border [&_td]:border-line [&_td]:px-2 [&_td]:py-1 [&_th]:border [&_th]:border-line [&_th]:px-2 [&_th]:py-1 [&_th]:text-left">
        {children}
      </table>
    </div>
  ),
  input: ({ checked }) => (
    <span aria-hidden className="mr-1">
      {checked ? '☑' : '☐'}
    </span>
  ),
}

/** Third-party Markdown: without its HTML, without images from other hosts, and with safe external links. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="space-y-3 break-words text-sm leading-relaxed [&_blockquote]:border-line [&_blockquote]:border-l-2 [&_blockquote]:pl-3 [&_code]:font-mono [&_ol]:list-decimal [&_ol]:pl-5 [&_ul]:list-disc [&_ul]:pl-5">
      <ReactMarkdown skipHtml remarkPlugins={[remarkGfm]} components={components}>
        {text}
      </ReactMarkdown>
    </div>
  )
}
