/** An address of the web as it may be in a link: what others wrote may be `javascript:`. */
export function safeLink(address: string | null | undefined): string | undefined {
  return address && /^https?:\/\//i.test(address) ? address : undefined
}
