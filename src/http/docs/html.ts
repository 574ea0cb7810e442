/** Text that is already HTML. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | undefined | null | false | Value[]

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a text for HTML, including inside quotes. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char)

function render(value: Value): string {
  if (Array.isArray(value)) return value.map(render).join('')
  if (value instanceof Html) return value.text
  return value === undefined || value === null || value === false ? '' : escapeHtml(String(value))
}

/** HTML as a tagged template: interpolated values are escaped, unless they are {@link Html}. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(strings.reduce((text, part, i) => text + render(values[i - 1]) + part))

/** The Markdown subset of descriptions: paragraphs, `code`, **strong**, *emphasis* and `\\` for a backslash. */
export function markdown(text: string): Html {
  const paragraphs = escapeHtml(text).split(/\n{2,}/)
  const inline = (paragraph: string) =>
    paragraph
      .split(/(`[^`]+`)/)
      .map((part) =>
        part.startsWith('`')
          ? `<code>${part.slice(1, -1)}</code>`
          : part
              .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
              .replace(/\*([^*]+)\*/g, '<em>$1</em>')
              .replaceAll('\\\\', '\\'),
      )
      .join('')
  return new Html(paragraphs.map((paragraph) => `<p>${inline(paragraph)}</p>`).join(''))
}
