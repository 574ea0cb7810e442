/** For how many days, weeks and months the last backup of each is kept. */
export type Keep = Record<'d' | 'w' | 'm', number>

/** Parses `7d,4w,12m`; undefined for any other format. */
export function parseKeep(text: string): Keep | undefined {
  const keep: Keep = { d: 0, w: 0, m: 0 }
  for (const part of text.split(',')) {
    const [, count, unit] = /^\s*([1-9]\d{0,3})([dwm])\s*$/.exec(part) ?? []
    if (!count || keep[unit as keyof Keep]) return undefined
    keep[unit as keyof Keep] = Number(count)
  }
  return keep
}
