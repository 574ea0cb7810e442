import { useMutation } from '@tanstack/react-query'
import { RequestError } from '../../../api/client.ts'
import { Button, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

/** Saves all matching entries as a file with one JSON object per line. */
export function Export({ path, query }: { path: string; query: Record<string, string | undefined> }) {
  const save = useMutation({
    async mutationFn() {
      const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []))
      const answer = await fetch(`${path}?${new URLSearchParams(given)}`, {
        headers: { accept: 'application/x-ndjson' },
      })
      if (!answer.ok) {
        const { error = answer.statusText } = await answer.json().catch(() => ({}))
        throw new RequestError(answer.status, error)
      }
      const url = URL.createObjectURL(await answer.blob())
      const link = document.createElement('a')
      link.href = url
      link.download = `audit-${new Date().toISOString().slice(0, 10)}.jsonl`
      link.click()
      URL.revokeObjectURL(url)
    },
  })
  return (
    <>
      <Button disabled={save.isPending} onClick={() => save.mutate()}>
        {texts.operate.audit.export}
      </Button>
      <Problem error={save.error} />
    </>
  )
}
