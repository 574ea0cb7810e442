/**
 * Look-alikes of the letters in brands, to detect names that would pass for the operator's own. A table for these
 * letters only: no maintained library has Unicode's confusables (UTS 39).
 */

/** Letters of other alphabets, and other Latin letters, that UTS 39 calls confusable or that differ by a stroke. */
const CLOSE = lookAlikes({
  a: 'ɑαа⍺ᴀ',
  b: 'Ꮟᑲᖯьƅƀɓʙ',
  e: 'е℮ꬲҽєεɛᴇ',
  h: 'һհᏂħɦʜ',
  i: 'ıɪɩιіꙇӏᎥ𑣃⍳ɨ',
  n: 'ոռɴɲɳ',
  p: 'рρⲣ⍴ᴘƥ',
  r: 'гⲅᴦꭇꭈʀɾ',
  t: 'ŧᴛƭţ',
})

/**
 * Letters that look alike only next to Latin ones: Russian words such as «конвертный» contain them in the order of a
 * brand.
 */
const LOOSE = lookAlikes({ b: 'вβß', h: 'н', n: 'пη', t: 'тτ' })

/** A domain label in the letters that a reader sees: without accents, and with look-alikes replaced. */
export function readAsLatin(label: string): string {
  const isMixed = /[a-z]/.test(label)
  const letters = label.normalize('NFKD').replace(/\p{M}/gu, '')
  return Array.from(
    letters,
    (letter) => CLOSE.get(letter) ?? (isMixed ? LOOSE.get(letter) : undefined) ?? letter,
  ).join('')
}

function lookAlikes(table: Record<string, string>): Map<string, string> {
  return new Map(
    Object.entries(table).flatMap(([latin, others]) =>
      Array.from(others, (other) => [other, latin] as const),
    ),
  )
}
