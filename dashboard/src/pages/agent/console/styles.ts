/**
 * xterm writes its styles into `<style>` elements and `style` attributes, both of which the page's policy refuses. While a
 * terminal is open, the document makes elements that hand the same text on as the policy allows it: to style sheets of
 * the document, and to the `style` property. xterm's own `documentOverride` is not asked by all of its parts.
 */

/** Returns what ends it. */
export function allowStyles(): () => void {
  const sheets = new Set<CSSStyleSheet>()
  const createElement = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions): HTMLElement => {
    if (name !== 'style') return withStyleProperty(createElement(name, options))
    const sheet = new CSSStyleSheet()
    sheets.add(sheet)
    document.adoptedStyleSheets.push(sheet)
    const stand = createElement('span')
    stand.hidden = true
    Object.defineProperty(stand, 'textContent', { set: (text: string) => sheet.replaceSync(text) })
    return stand
  }) as typeof document.createElement
  return () => {
    Reflect.deleteProperty(document, 'createElement')
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.has(sheet))
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
