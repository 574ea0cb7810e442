/**
 * xterm writes its styles into `<style>` elements and `style` attributes, both of which the page's policy refuses. While a
 * terminal is open, the document creates elements that pass the same text to adopted style sheets and to the `style`
 * property, which the policy allows. Not all parts of xterm use its `documentOverride`.
 */

/** @returns a function that restores the document. */
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
