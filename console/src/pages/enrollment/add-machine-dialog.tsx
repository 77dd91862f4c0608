import { useEffect, useRef, useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';
import { Arrivals } from './arrivals.tsx';
import { TokenCommands } from './token-commands.tsx';
import { lifetimes, type TokenFormState, useTokenForm } from './use-token-form.ts';

/**
 * Adds machines: creates an enrollment token, shows the command that uses it, and waits for the machines. The token is
 * shown only once. If the dialog closes, revokes an unused token that the operator did not request.
 */
export function AddMachineDialog({
  asks = false,
  onClose,
}: {
  /** Whether to ask for the token options first. By default, the token is for one machine and expires after an hour. */
  readonly asks?: boolean;
  readonly onClose: () => void;
}) {
  const form = useTokenForm();
  const [isAsking, setAsking] = useState(asks);
  const { create, createDefault } = form;
  const isStarted = useRef(asks);
  useEffect(() => {
    // React runs effects twice in development.
    if (isStarted.current) return;
    isStarted.current = true;
    createDefault();
  }, [createDefault]);
  const token = create.data;
  const [isAsked, setAsked] = useState(asks);
  const asksNow = isAsking || create.isError;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      wide={!asksNow}
      title={asksNow ? 'New enrollment token' : 'Add machine'}
      footer={
        asksNow ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" form="token" busy={create.isPending}>
              Create token
            </Button>
          </>
        ) : (
          <>
            <Button onClick={() => setAsking(true)}>Options…</Button>
            <Button onClick={onClose}>Done</Button>
          </>
        )
      }
    >
      {asksNow ? (
        <form
          id="token"
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate(undefined, {
              onSuccess: () => {
                setAsking(false);
                setAsked(true);
              },
            });
          }}
        >
          <Problem error={create.error} />
          <Fields {...form} />
        </form>
      ) : token === undefined ? (
        <Skeleton className="h-16 w-full rounded-md" />
      ) : (
        <div className="space-y-4">
          <TokenCommands token={token} isKept={isAsked} onCopy={form.keep} />
          <Arrivals key={token.id} token={token} />
        </div>
      )}
    </Dialog>
  );
}

function Fields({ fields, change, canName }: TokenFormState) {
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <Input
          label="Number of machines"
          type="number"
          min={1}
          max={10_000}
          required
          autoFocus
          value={fields.uses}
          onChange={(event) => change({ uses: event.target.value })}
        />
        <Select
          label="Valid for"
          value={fields.lifetime}
          onChange={(event) => change({ lifetime: event.target.value })}
        >
          {lifetimes.map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </Select>
      </div>
      {fields.uses === '1' && (
        <Input
          label="Name (optional)"
          value={canName ? fields.name : ''}
          disabled={!canName}
          onChange={(event) => change({ name: event.target.value })}
          hint={
            canName
              ? 'The name of the agent. Default: the hostname of its machine.'
              : 'The operator who approves the agent chooses its name.'
          }
        />
      )}
      <Input
        label="Tags (optional)"
        value={fields.tags}
        placeholder="role=web site=paris"
        onChange={(event) => change({ tags: event.target.value })}
      />
      <Checkbox
        label="Approve automatically"
        hint="Otherwise an operator approves each agent."
        checked={fields.approve}
        onChange={(event) => change({ approve: event.target.checked })}
      />
    </>
  );
}
