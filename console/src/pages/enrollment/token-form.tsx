import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { TokenCommands } from './token-commands.tsx';
import { lifetimes, type TokenFormState, useTokenForm } from './use-token-form.ts';

/** Creates an enrollment token and shows the command that uses it. The token is shown only once. */
export function TokenForm({ onClose }: { readonly onClose: () => void }) {
  const form = useTokenForm();
  const { create } = form;
  const token = create.data;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      wide={token !== undefined}
      title={token === undefined ? 'New enrollment token' : 'Run this on the machine'}
      footer={
        token === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" form="token" busy={create.isPending}>
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
      {token === undefined ? (
        <form
          id="token"
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate();
          }}
        >
          <Problem error={create.error} />
          <Fields {...form} />
        </form>
      ) : (
        <TokenCommands token={token} />
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
