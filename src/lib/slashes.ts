/** Removes trailing slashes from a text in linear time: the pattern `/\/+$/` scans each run of slashes many times. */
export function trimSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}
