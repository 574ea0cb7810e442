/** The consent pages, which programs open with a query: a sign-in leads back there, even one at an OpenID provider. */

const KEY = 'berth-consent-page'
const PAGES = ['/dashboard/authorize', '/dashboard/program']
let isOpened = PAGES.includes(location.pathname)
const opened = location.pathname + location.search

/** The query as the program wrote it, because the router may spell it differently. */
export const openedQuery = isOpened ? location.search.slice(1) : ''

/** Remembers the consent page in this tab. */
export function rememberPage(): void {
  if (isOpened) sessionStorage.setItem(KEY, opened)
}

/** The user has decided: a later sign-in does not lead back to the consent page. */
export function leavePage(): void {
  isOpened = false
}

/** Goes back to the consent page, once. @returns false if this tab was not there. */
export function comeBack(): boolean {
  const page = sessionStorage.getItem(KEY)
  if (page === null) return false
  sessionStorage.removeItem(KEY)
  location.assign(page)
  return true
}
