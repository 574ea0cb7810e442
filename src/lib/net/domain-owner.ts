import { getDomain } from 'tldts'

/**
 * The part of a name that one owner has registered, by the Public Suffix List with its private part: `example.co.uk`,
 * `shop.github.io`. Null for a suffix, below which strangers have names.
 */
export const registeredDomain = (name: string): string | null =>
  getDomain(name, { allowPrivateDomains: true })
