import type { Agent } from '@muster/protocol/http';
import { isTagKey, isTagValue } from '@muster/protocol/selector';
import { useId, useState } from 'react';
import { setTag, useSelectorVocabulary } from '../../api/agents.ts';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { told } from '../../parts/dialog/toast.tsx';
import { Input } from '../../parts/form/field.tsx';
import { calledOf } from './agent-state.ts';

/** Sets one tag on many, or takes it away from those that have it. */
export function TagDialog({
  agents,
  remove,
  onClose,
}: {
  readonly agents: readonly Agent[];
  readonly remove: boolean;
  readonly onClose: () => void;
}) {
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const id = useId();
  const { keys, values } = useSelectorVocabulary();
  const [those] = useState(agents);
  const concerned = remove ? those.filter(({ tags }) => Object.hasOwn(tags, key)) : those;
  const known = remove
    ? [...new Set(those.flatMap(({ tags }) => Object.keys(tags)))].sort()
    : keys()
        .map(({ value }) => value)
        .filter((name) => !name.startsWith('attr.'));
  const count = concerned.length;
  const verb = remove ? 'Untag' : 'Tag';
  return (
    <EachDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`${verb} ${those.length} ${those.length === 1 ? 'agent' : 'agents'}`}
      description={
        remove
          ? 'Assignments whose selector needs the tag no longer match them; what was applied stays until the next apply.'
          : 'Assignments whose selector matches the tag concern them from the next apply.'
      }
      action={`${verb} ${count}`}
      done={remove ? 'untagged' : 'tagged'}
      ready={isTagKey(key) && isTagValue(value) && count > 0}
      items={concerned.map((agent) => ({ id: agent.node_id, name: calledOf(agent), agent }))}
      act={({ agent }) => setTag(agent, key, remove ? null : value)}
      onDone={(ids) => told(`${ids.length} ${remove ? 'untagged' : 'tagged'}`)}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Input
          label="Key"
          list={`${id}-keys`}
          value={key}
          onChange={(event) => setKey(event.target.value)}
          error={key === '' || isTagKey(key) ? null : 'letters, digits, . _ - /, the first a letter'}
          hint={remove && key !== '' ? `${count} of them have it` : undefined}
        />
        {!remove && (
          <Input
            label="Value"
            list={`${id}-values`}
            value={value}
            onChange={(event) => setValue(event.target.value)}
            error={isTagValue(value) ? null : 'up to 256 characters, without control characters'}
            hint="may be empty"
          />
        )}
        <datalist id={`${id}-keys`}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <datalist id={`${id}-values`}>
          {values(key).map(({ value: each }) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </div>
    </EachDialog>
  );
}
