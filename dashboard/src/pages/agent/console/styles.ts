/**
 * xterm writes its styles into `<style>` elements and `style` attributes, both of which the page's policy refuses. Here
 * it gets elements that hand the same text on as the policy allows it: to style sheets of the document, and to the
 * `style` property.
 */
import type { Terminal } from '@xterm/xterm'

const createElement = document.createElement.bind(document)

/** A document for `documentOverride`, whose elements keep to the policy; and the sheets that were made with it. */
export function styledDocument(): {
  override: Document
  open: (terminal: Terminal, place: HTMLElement) => void
  remove: () => void
} {
  const sheets = new Set<CSSStyleSheet>()
  const create = (name: string): HTMLElement => {
    if (name !== 'style') return withStyleProperty(createElement(name))
    const sheet = new CSSStyleSheet()
    sheets.add(sheet)
    document.adoptedStyleSheets.push(sheet)
    const stand = createElement('span')
    stand.hidden = true
    Object.defineProperty(stand, 'textContent', { set: (text: string) => sheet.replaceSync(text) })
    return stand
  }
  const override = new Proxy(document, {
    get(target, key) {
      if (key === 'createElement') return create
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    override,
    // The scroll bar's style is made with the page's own document, whatever xterm was given.
    open(terminal, place) {
      document.createElement = ((name: string) => create(name)) as typeof document.createElement
      try {
        terminal.open(place)
      } finally {
        Reflect.deleteProperty(document, 'createElement')
      }
    },
    remove() {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.has(sheet))
    },
  }
}

function withStyleProperty(element: HTMLElement): HTMLElement {
  const set = element.setAttribute.bind(element)
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value
    else set(name, value)
  }
  return element
}
