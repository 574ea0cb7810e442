/** The consent page, which a program opens with a query: a sign-in leads back there, even one at an OpenID provider. */

const KEY = 'berth-come-back'
const PAGE = '/dashboard/authorize'

/** The query as the program wrote it, because the router may spell it differently. */
export const openedQuery = location.pathname === PAGE ? location.search.slice(1) : ''

/** Remembers the consent page in this tab. */
export function rememberPage(): void {
  if (openedQuery) sessionStorage.setItem(KEY, openedQuery)
}

/** Goes back to the consent page, once. @returns false if this tab was not there. */
export function comeBack(): boolean {
  const query = sessionStorage.getItem(KEY)
  if (query === null) return false
  sessionStorage.removeItem(KEY)
  location.assign(`${PAGE}?${query}`)
  return true
}
