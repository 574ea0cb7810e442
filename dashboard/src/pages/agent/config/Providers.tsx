import { useState } from 'react'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { Button, Card, Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { isObject, type Json, read, write } from './config.ts'

const t = texts.config
const PROVIDERS = ['models', 'providers']
const OPERATOR = 'berth'
const APIS = [
  'openai-completions',
  'openai-responses',
  'anthropic-messages',
  'google-generative-ai',
  'ollama',
]

/** Model servers in the config, in addition to the providers that the engine knows. */
export function Providers({ config, onChange }: { config: Json; onChange: (config: Json) => void }) {
  const [isNew, setNew] = useState(false)
  const there = read(config, PROVIDERS)
  const providers = isObject(there) ? Object.entries(there) : []
  return (
    <Card title={t.providers}>
      <p className="-mt-2 mb-3 text-soft text-sm">{t.providersHint}</p>
      {providers.length > 0 && (
        <ul className="mb-3 divide-y divide-line border-line border-y">
          {providers.map(([name, about]) => (
            <li key={name} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
              <span className="min-w-0 break-words font-medium">{name}</span>
              <code className="min-w-0 flex-1 break-all text-soft text-xs">
                {String(read(about, ['baseUrl']) ?? '')}
              </code>
              {name === OPERATOR ? (
                <span className="text-soft text-xs">{t.ofOperator}</span>
              ) : (
                <Button changes onClick={() => onChange(write(config, [...PROVIDERS, name], undefined))}>
                  {t.remove}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      <Button changes onClick={() => setNew(true)}>
        {t.addProvider}
      </Button>
      {isNew && (
        <AddProvider
          onClose={() => setNew(false)}
          onAdd={(name, provider) => {
            onChange(write(config, [...PROVIDERS, name], provider))
            setNew(false)
          }}
        />
      )}
    </Card>
  )
}

function AddProvider({
  onAdd,
  onClose,
}: {
  onAdd: (name: string, provider: Json) => void
  onClose: () => void
}) {
  const [told, setTold] = useState({ name: '', baseUrl: '', api: APIS[0] ?? '', secret: '', model: '' })
  const field = (name: keyof typeof told) => ({
    value: told[name],
    onChange: (event: { target: { value: string } }) =>
      setTold({ ...told, [name]: event.target.value.trim() }),
  })
  const add = () => {
    const { name, baseUrl, api, secret, model } = told
    const models = [{ id: model, name: model }]
    // The value stays in the secret: the engine reads it from the agent's environment.
    onAdd(name, { baseUrl, api, ...(secret && { apiKey: `\${${secret}}` }), models })
  }
  return (
    <FormDialog
      title={t.addProvider}
      hint={t.addProviderHint}
      submit={t.addProvider}
      saving={{ isPending: false, error: null }}
      onSubmit={add}
      onClose={onClose}
    >
      <Field
        label={t.providerName}
        required
        pattern="[a-z0-9_\-]+"
        placeholder="my-models"
        {...field('name')}
      />
      <Field label={t.baseUrl} type="url" required placeholder="https://" {...field('baseUrl')} />
      <Select label={t.api} {...field('api')}>
        {APIS.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </Select>
      <Field
        label={t.secretName}
        placeholder="MY_MODELS_API_KEY"
        pattern="[A-Z_][A-Z0-9_]*"
        {...field('secret')}
      />
      <Field label={t.modelId} required {...field('model')} />
    </FormDialog>
  )
}
