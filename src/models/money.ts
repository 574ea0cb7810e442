/**
 * Amounts of money: whole picodollars (10⁻¹² US dollars) for calculations, decimal strings in US dollars for clients and
 * the database.
 */

const DECIMALS = 12

/** The picodollars of a decimal string that is not negative. Decimals beyond the twelfth are cut. */
export function toPicodollars(usd: string): bigint {
  const [whole = '', decimals = ''] = usd.split('.')
  return BigInt(whole + decimals.slice(0, DECIMALS).padEnd(DECIMALS, '0'))
}

/** A decimal string with two to twelve decimals: `5.00`, `0.0123`. */
export function toUsd(picodollars: bigint | number): string {
  if (picodollars < 0) return `-${toUsd(-picodollars)}`
  const digits = BigInt(picodollars)
    .toString()
    .padStart(DECIMALS + 1, '0')
  const decimals = digits.slice(-DECIMALS).replace(/0{1,10}$/, '')
  return `${digits.slice(0, -DECIMALS)}.${decimals}`
}
