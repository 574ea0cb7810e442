/** The address if it is safe as a link: third-party text may contain `javascript:`. */
export function safeLink(address: string | null | undefined): string | undefined {
  return address && /^https?:\/\//i.test(address) ? address : undefined
}
