import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, signInCode, unwrap } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { Button, Card, PageHead, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { leavePage, openedQuery } from '../login/come-back.ts'
import { Fact, KeysHint, Lifetime } from './parts.tsx'

const t = texts.program

/** Asks the user whether the program that opened this page, such as `berth login`, may sign in. */
export function Program() {
  const asked = new URLSearchParams(openedQuery)
  const challenge = asked.get('challenge') ?? ''
  const name = asked.get('name') ?? ''
  const me = useMe().data?.data
  const [days, setDays] = useState('30')
  const [isRefused, setRefused] = useState(false)
  const allow = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/v0/sessions/programs', { body: { challenge, name, days: Number(days) } })),
    onSuccess: leavePage,
  })
  const refuse = () => {
    leavePage()
    setRefused(true)
  }
  if (!/^[\w-]{43}$/.test(challenge)) return <Outcome title={texts.authorize.broken} hint={t.brokenHint} />
  if (isRefused) return <Outcome title={t.refused} hint={t.refusedHint} />
  if (allow.isSuccess) return <Outcome title={t.allowed} hint={t.allowedHint} />
  return (
    <div className="mx-auto max-w-xl">
      <PageHead title={t.title} />
      <Card>
        <p className="text-sm">{t.compare}</p>
        <p className="my-4 text-center font-mono font-semibold text-2xl tracking-widest">
          {signInCode(challenge)}
        </p>
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 text-sm">
          <Fact name={t.machine} value={texts.authorize.claimed(name)} />
          <Fact name={texts.authorize.workspace} value={me ? `${me.workspace.name} · ${me.user.name}` : ''} />
        </dl>
        <Lifetime value={days} onChange={setDays} />
        <KeysHint text={t.hint} />
        <Problem error={allow.error} />
        <div className="mt-5 flex justify-end gap-2">
          <Button disabled={allow.isPending} onClick={refuse}>
            {texts.authorize.refuse}
          </Button>
          <Button look="main" disabled={allow.isPending} onClick={() => allow.mutate()}>
            {t.allow}
          </Button>
        </div>
      </Card>
    </div>
  )
}

function Outcome({ title, hint }: { title: string; hint: string }) {
  return (
    <>
      <PageHead title={title} />
      <p className="mt-3 max-w-prose text-soft text-sm">{hint}</p>
    </>
  )
}
