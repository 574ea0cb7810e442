import { useState } from 'react'
import { Select } from '../../../parts/forms.tsx'
import { Button, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { isObject, type Json } from './config.ts'
import { type Key, useSchema } from './schema.ts'

const t = texts.config

/** A setting of the engine: its value, and a control if it is a text, a number or a switch. */
export function Leaf({
  agentId,
  leaf: { path, key, label, help, type, sensitive },
  value,
  isOperators,
  onChange,
}: {
  agentId: string
  leaf: Key
  value: unknown
  isOperators: boolean
  onChange: (value: unknown) => void
}) {
  const [isOpen, setOpen] = useState(false)
  const shown = value === undefined ? t.asItIs : sensitive ? t.hidden : JSON.stringify(value)
  return (
    <li className="px-5 py-3 text-sm">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <span className="font-medium">{label ?? key}</span>
        <code className="break-all text-soft text-xs">{path}</code>
        <span
          className={`ml-auto max-w-full break-all ${value === undefined ? 'text-soft' : 'font-mono text-xs'}`}
        >
          {shown}
        </span>
        {isOperators ? (
          <span className="text-soft text-xs">{t.ofOperator}</span>
        ) : (
          <Button
            changes
            aria-expanded={isOpen}
            aria-label={isOpen ? t.closeKey(path) : t.changeKey(path)}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? texts.close : t.change}
          </Button>
        )}
      </div>
      {help && <p className="mt-1 text-soft text-xs">{help}</p>}
      {isOpen && <Control agentId={agentId} path={path} type={type} value={value} onChange={onChange} />}
    </li>
  )
}

/** The control for the values that the schema allows at a path. */
function Control({
  agentId,
  path,
  type,
  value,
  onChange,
}: Pick<Key, 'path' | 'type'> & { agentId: string; value: unknown; onChange: (value: unknown) => void }) {
  const { data, error } = useSchema(agentId, path)
  if (error) return <Problem error={error} />
  if (!data) return <p className="mt-2 text-soft">{texts.loading}</p>
  const options = optionsOf(data.schema)
  const { minimum, maximum } = data.schema as { minimum?: number; maximum?: number }
  const isNumber = type === 'number' || type === 'integer'
  if (options)
    return (
      <div className="mt-2 max-w-sm">
        <Select
          label={t.valueOf(path)}
          value={value === undefined ? '' : JSON.stringify(value)}
          onChange={({ target }) => onChange(target.value === '' ? undefined : JSON.parse(target.value))}
        >
          <option value="">{t.asItIs}</option>
          {options.map((one) => (
            <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
              {String(one)}
            </option>
          ))}
        </Select>
      </div>
    )
  if (!isNumber && type !== 'string') return <p className="mt-2 text-soft">{t.inJson}</p>
  const read = (text: string) => (text === '' ? undefined : isNumber ? Number(text) : text)
  return (
    <div className="mt-2 max-w-sm">
      <Field
        label={t.valueOf(path)}
        type={isNumber ? 'number' : 'text'}
        step={type === 'integer' ? 1 : 'any'}
        min={minimum}
        max={maximum}
        placeholder={t.asItIs}
        value={value === undefined ? '' : String(value)}
        onChange={({ target }) => onChange(read(target.value))}
      />
    </div>
  )
}

/** The allowed values, if the schema lists all of them. */
function optionsOf(schema: Json): unknown[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum
  if ('const' in schema) return [schema.const]
  if (schema.type === 'boolean') return [true, false]
  const variants = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(variants)) return undefined
  const options = variants.map((variant) => (isObject(variant) ? optionsOf(variant) : undefined))
  return options.includes(undefined) ? undefined : options.flat()
}
