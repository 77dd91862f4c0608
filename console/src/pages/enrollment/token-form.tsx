import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { makeEnrolmentToken } from '../../api/enrolment.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { tagsOf } from './token-state.ts';

const lifetimes = [
  [3_600, 'an hour'],
  [86_400, 'a day'],
  [604_800, 'a week'],
  [2_592_000, '30 days'],
] as const;

/** Creates an enrollment token and shows its command once. */
export function TokenForm({ onClose }: { readonly onClose: () => void }) {
  const [uses, setUses] = useState('1');
  const [name, setName] = useState('');
  const [tags, setTags] = useState('');
  const [lifetime, setLifetime] = useState(String(lifetimes[0][0]));
  const [approve, setApprove] = useState(true);
  // The orchestrator accepts a name only for a single-use token with automatic approval.
  const canName = uses === '1' && approve;
  const make = useMutation({
    mutationFn: () =>
      Promise.resolve().then(() =>
        makeEnrolmentToken({
          expires_in: Number(lifetime),
          uses: Number(uses),
          approve,
          tags: tagsOf(tags),
          ...(canName && name.trim() !== '' ? { name: name.trim() } : {}),
        }),
      ),
  });
  const made = make.data;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      wide={made !== undefined}
      title={made === undefined ? 'New enrollment token' : 'Run this on the machine'}
      footer={
        made === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" form="token" busy={make.isPending}>
              Create token
            </Button>
          </>
        ) : (
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        )
      }
    >
      {made === undefined ? (
        <form
          id="token"
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            make.mutate();
          }}
        >
          <Problem error={make.error} />
          <div className="grid gap-4 sm:grid-cols-2">
            <Input
              label="Number of machines"
              type="number"
              min={1}
              max={10_000}
              required
              autoFocus
              value={uses}
              onChange={(event) => setUses(event.target.value)}
            />
            <Select label="Valid for" value={lifetime} onChange={(event) => setLifetime(event.target.value)}>
              {lifetimes.map(([seconds, text]) => (
                <option key={seconds} value={seconds}>
                  {text}
                </option>
              ))}
            </Select>
          </div>
          {uses === '1' && (
            <Input
              label="Name (optional)"
              value={canName ? name : ''}
              disabled={!canName}
              onChange={(event) => setName(event.target.value)}
              hint={
                canName
                  ? 'The name of the agent. Default: the hostname of its machine.'
                  : 'The operator who approves the agent names it.'
              }
            />
          )}
          <Input
            label="Tags (optional)"
            value={tags}
            placeholder="role=web site=paris"
            onChange={(event) => setTags(event.target.value)}
          />
          <Checkbox
            label="Approve automatically"
            hint="Otherwise an operator approves each agent."
            checked={approve}
            onChange={(event) => setApprove(event.target.checked)}
          />
        </form>
      ) : (
        <div className="space-y-4">
          <p className="text-muted text-sm">Run it as root. The token is shown only once.</p>
          {made.note !== null && (
            <Callout tone="info" title="The agent must already be installed">
              No installation command is available: <Text text={made.note} maxLength={500} />
            </Callout>
          )}
          <Code text={made.command} />
          {made.connect_command !== made.command && (
            <>
              <p className="text-muted text-sm">If the agent is already installed:</p>
              <Code text={made.connect_command} />
            </>
          )}
        </div>
      )}
    </Dialog>
  );
}
