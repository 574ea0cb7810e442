import { useState } from 'react'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { texts } from '../../../texts.ts'
import { NETWORKS, type Network } from '../files.ts'
import type { Chosen } from './dropped.ts'
import { useTake } from './take.ts'

const words = texts.files.upload

/** Asks for the network of files dropped on a page without an upload area. */
export function DropDialog({ chosen, onClose }: { chosen: Chosen[]; onClose: () => void }) {
  const [network, setNetwork] = useState<Network>('public')
  const { take, error } = useTake({ network, groupId: undefined })
  const upload = () => {
    if (take(chosen)) onClose()
  }
  const [first] = chosen
  return (
    <FormDialog
      title={words.dropped(chosen.length === 1 && first ? first.name : words.things(chosen.length))}
      hint={words.droppedHint}
      submit={words.title}
      saving={{ isPending: false, error }}
      onSubmit={upload}
      onClose={onClose}
    >
      <Select
        label={words.network}
        value={network}
        onChange={(event) => setNetwork(event.target.value === 'private' ? 'private' : 'public')}
      >
        {NETWORKS.map((one) => (
          <option key={one} value={one}>
            {texts.files[one]}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}
