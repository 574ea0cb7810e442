import { useId } from 'react'
import { Check } from '../../../parts/choice.tsx'
import { Select } from '../../../parts/forms.tsx'
import { Card, Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type Json, modelsOf, read, write } from './config.ts'
import { Providers } from './Providers.tsx'

const t = texts.config
const DEFAULTS = ['agents', 'defaults']
const MODEL = [...DEFAULTS, 'model']
const HEARTBEAT = [...DEFAULTS, 'heartbeat', 'every']
const THINKING = [...DEFAULTS, 'thinkingDefault']
const TIMEZONE = [...DEFAULTS, 'userTimezone']
const DREAMING = ['plugins', 'entries', 'memory-core', 'config', 'dreaming', 'enabled']
const LEVELS = ['off', 'minimal', 'low', 'medium', 'high']

/** A form for the most common settings. Other settings stay unchanged. */
export function ConfigForm({ config, onChange }: { config: Json; onChange: (config: Json) => void }) {
  const set = (path: string[], value: unknown) => onChange(write(config, path, value))
  const model = read(config, MODEL)
  const fallbacks = read(model, ['fallbacks'])
  const text = (path: string[]) => String(read(config, path) ?? '')
  const setModel = (change: Json) =>
    set(MODEL, { ...(typeof model === 'object' ? model : model ? { primary: model } : {}), ...change })
  const list = useId()
  const level = text(THINKING)
  return (
    <div className="space-y-4">
      <Card title={t.model}>
        <div className="grid gap-4 md:grid-cols-2">
          <div>
            <Field
              label={t.primary}
              list={list}
              placeholder="provider/model"
              value={String(read(model, ['primary']) ?? (typeof model === 'string' ? model : ''))}
              onChange={(event) => setModel({ primary: event.target.value || undefined })}
            />
            <p className="mt-1 text-soft text-xs">{t.primaryHint}</p>
          </div>
          <div>
            <Field
              label={t.fallbacks}
              value={Array.isArray(fallbacks) ? fallbacks.join(', ') : ''}
              onChange={(event) => setModel({ fallbacks: toList(event.target.value) })}
            />
            <p className="mt-1 text-soft text-xs">{t.fallbacksHint}</p>
          </div>
          <datalist id={list}>
            {modelsOf(config).map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <Select
            label={t.thinking}
            value={level}
            onChange={(event) => set(THINKING, event.target.value || undefined)}
          >
            {['', ...new Set([...LEVELS, ...(level ? [level] : [])])].map((one) => (
              <option key={one} value={one}>
                {one || t.asItIs}
              </option>
            ))}
          </Select>
        </div>
      </Card>
      <Providers config={config} onChange={onChange} />
      <Card title={t.habits}>
        <div className="grid gap-4 md:grid-cols-2">
          <div>
            <Field
              label={t.heartbeat}
              placeholder="0m"
              value={text(HEARTBEAT)}
              onChange={(event) => set(HEARTBEAT, event.target.value || undefined)}
            />
            <p className="mt-1 text-soft text-xs">{t.heartbeatHint}</p>
          </div>
          <Field
            label={t.timezone}
            placeholder="Europe/Berlin"
            value={text(TIMEZONE)}
            onChange={(event) => set(TIMEZONE, event.target.value || undefined)}
          />
          <Check
            label={t.dreaming}
            hint={t.dreamingHint}
            checked={read(config, DREAMING) === true}
            onChange={(isOn) => set(DREAMING, isOn)}
          />
        </div>
      </Card>
    </div>
  )
}

/** A comma-separated list; undefined if empty. A comma at the end means that the person is still typing. */
function toList(text: string): string[] | undefined {
  const items = text.split(',').map((one) => one.trimStart())
  return text === '' ? undefined : items
}
