import type { Agent } from '@muster/protocol/http';
import { isTagKey, isTagValue } from '@muster/protocol/selector';
import { useId, useState } from 'react';
import { setTag, useSelectorVocabulary } from '../../api/tags.ts';
import { countedText } from '../../parts/count.ts';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input } from '../../parts/form/field.tsx';
import { displayName } from './agent-state.ts';

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
  const [targets] = useState(agents);
  const affected = remove ? targets.filter(({ tags }) => Object.hasOwn(tags, key)) : targets;
  const known = remove
    ? [...new Set(targets.flatMap(({ tags }) => Object.keys(tags)))].sort()
    : keys()
        .map(({ value }) => value)
        .filter((name) => !name.startsWith('attr.'));
  const count = affected.length;
  const verb = remove ? 'Untag' : 'Tag';
  return (
    <EachDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`${verb} ${countedText(targets.length, 'agent')}`}
      description={
        remove
          ? 'Assignments that select this tag no longer match. Applied resources stay until the next apply.'
          : 'Assignments that select this tag take effect with the next apply.'
      }
      action={`${verb} ${count}`}
      done={remove ? 'untagged' : 'tagged'}
      ready={isTagKey(key) && isTagValue(value) && count > 0}
      items={affected.map((agent) => ({ id: agent.node_id, name: displayName(agent), agent }))}
      act={({ agent }) => setTag(agent, key, remove ? null : value)}
      onDone={(ids) => notify(`${ids.length} ${remove ? 'untagged' : 'tagged'}`)}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Input
          label="Key"
          list={`${id}-keys`}
          value={key}
          onChange={(event) => setKey(event.target.value)}
          error={key === '' || isTagKey(key) ? null : 'Start with a letter. Use letters, digits, and . _ - /'}
          hint={
            remove && key !== '' ? `${countedText(count, 'agent')} ${count === 1 ? 'has' : 'have'} this tag` : undefined
          }
        />
        {!remove && (
          <Input
            label="Value"
            list={`${id}-values`}
            value={value}
            onChange={(event) => setValue(event.target.value)}
            error={isTagValue(value) ? null : 'Use at most 256 characters and no control characters.'}
            hint="May be empty"
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
