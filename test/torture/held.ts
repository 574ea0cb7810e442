import type { Source } from './content.ts'

/** Keeps the last leaf of each content back, so that no retrieval ends before the returned function is called. */
export async function holdLastLeaves({ provider, contents }: Source): Promise<() => void> {
  const releases: (() => void)[] = []
  for (const { cid } of contents) {
    const leaf = (await provider.links(cid)).at(-1)
    if (leaf) releases.push(provider.hold(leaf))
  }
  return () => {
    for (const release of releases) release()
  }
}
