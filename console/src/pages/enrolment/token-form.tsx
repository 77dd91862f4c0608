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

const lives = [
  [3_600, 'an hour'],
  [86_400, 'a day'],
  [604_800, 'a week'],
  [2_592_000, '30 days'],
] as const;

/** Makes a token, and shows the line to paste: once. */
export function TokenForm({ onClose }: { readonly onClose: () => void }) {
  const [uses, setUses] = useState('1');
  const [name, setName] = useState('');
  const [tags, setTags] = useState('');
  const [life, setLife] = useState(String(lives[0][0]));
  const [approve, setApprove] = useState(true);
  // The orchestrator takes a name only for the one agent that comes in by this token alone.
  const named = uses === '1' && approve;
  const make = useMutation({
    mutationFn: () =>
      Promise.resolve().then(() =>
        makeEnrolmentToken({
          expires_in: Number(life),
          uses: Number(uses),
          approve,
          tags: tagsOf(tags),
          ...(named && name.trim() !== '' ? { name: name.trim() } : {}),
        }),
      ),
  });
  const made = make.data;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      wide={made !== undefined}
      title={made === undefined ? 'New enrolment token' : 'Paste this on the machine'}
      footer={
        made === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" form="token" busy={make.isPending}>
              Make token
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
              label="For how many machines"
              type="number"
              min={1}
              max={10_000}
              required
              autoFocus
              value={uses}
              onChange={(event) => setUses(event.target.value)}
            />
            <Select label="Good for" value={life} onChange={(event) => setLife(event.target.value)}>
              {lives.map(([seconds, text]) => (
                <option key={seconds} value={seconds}>
                  {text}
                </option>
              ))}
            </Select>
          </div>
          {uses === '1' && (
            <Input
              label="Name (optional)"
              value={named ? name : ''}
              disabled={!named}
              onChange={(event) => setName(event.target.value)}
              hint={
                named
                  ? 'What the agent is called. Without one it is called as its machine is.'
                  : 'Whoever approves it gives it a name.'
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
            label="Approve at once"
            hint="Otherwise an operator approves each agent that comes with it."
            checked={approve}
            onChange={(event) => setApprove(event.target.checked)}
          />
        </form>
      ) : (
        <div className="space-y-4">
          <p className="text-muted text-sm">Run it as root. The token in it is shown only now.</p>
          {made.note !== null && (
            <Callout tone="info" title="The agent must be installed there already">
              There is no line that installs it: <Text text={made.note} most={500} />
            </Callout>
          )}
          <Code text={made.command} />
          {made.connect_command !== made.command && (
            <>
              <p className="text-muted text-sm">Where the agent is installed already:</p>
              <Code text={made.connect_command} />
            </>
          )}
        </div>
      )}
    </Dialog>
  );
}
