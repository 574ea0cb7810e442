import type { Source } from './content.ts'

/** Holds back the last leaf of each content, so that no retrieval ends before the returned function is called. */
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
