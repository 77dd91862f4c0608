import { Copy } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { revokeToken } from '../../api/enrollment.ts';
import { Button } from '../../parts/button.tsx';
import { copyPromised } from '../../parts/copy.tsx';
import { countedText } from '../../parts/count.ts';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { Arrivals } from './arrivals.tsx';
import { TokenCommands } from './token-commands.tsx';
import { lifetimes, type TokenFormState, useTokenForm } from './use-token-form.ts';

/**
 * Adds machines: creates an enrollment token, shows the command that uses it, and waits for the machines. A token exists
 * only after the operator has copied the command or submitted the options, because each token can enroll a machine.
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
  const { create } = form;
  const token = create.data;
  const asksNow = isAsking || create.isError;
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const copyCommand = async () => {
    const created = create.mutateAsync();
    if (await copyPromised(created.then(({ command }) => command))) return notify('Command copied');
    const unseen = await created.catch(() => null);
    // The dialog shows why no token was created.
    if (unseen === null) return;
    if (isOpen.current) notifyError('the browser did not copy the command; copy it from the dialog');
    else await revokeToken(unseen.id).catch(() => {});
  };
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
            <Button onClick={onClose}>{token === undefined ? 'Cancel' : 'Close'}</Button>
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
            create.mutate(undefined, { onSuccess: () => setAsking(false) });
          }}
        >
          <Problem error={create.error} />
          <Fields {...form} />
        </form>
      ) : token === undefined ? (
        <NoToken form={form} onCopy={() => void copyCommand()} />
      ) : (
        <div className="space-y-4">
          <TokenCommands token={token} />
          <Arrivals key={token.id} token={token} />
        </div>
      )}
    </Dialog>
  );
}

/** Offers the command before its token exists. */
function NoToken({ form: { fields, create }, onCopy }: { readonly form: TokenFormState; readonly onCopy: () => void }) {
  const lifetime = lifetimes.find(([seconds]) => String(seconds) === fields.lifetime)?.[1];
  return (
    <div className="space-y-3">
      <p className="text-sm">
        Run one command as root on {fields.uses === '1' ? 'the machine' : 'each machine'} to connect it.
      </p>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-3 rounded-md border bg-raised p-3 max-sm:flex-col max-sm:items-stretch">
        <p className="min-w-0 flex-1 text-muted text-sm">
          The command contains a new token for {countedText(Number(fields.uses), 'machine')}
          {lifetime !== undefined && `, valid for ${lifetime}`}.
        </p>
        <Button look="primary" autoFocus busy={create.isPending} icon={<Copy className="size-4" />} onClick={onCopy}>
          Copy command
        </Button>
      </div>
    </div>
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
