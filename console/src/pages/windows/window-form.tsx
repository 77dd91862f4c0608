import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { Checkbox, Input } from '../../parts/form/field.tsx';
import { useWindowForm, type WindowFormTarget } from './use-window-form.ts';
import { WindowSelectorField } from './window-selector-field.tsx';

const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();

export function WindowForm({
  target,
  now,
  onClose,
}: {
  readonly target: WindowFormTarget;
  readonly now: number;
  readonly onClose: () => void;
}) {
  const { window } = target;
  const form = useWindowForm(target, now, onClose);
  const { fields, change } = form;
  return (
    <FormDialog
      title={window === null ? 'New maintenance window' : 'Change the maintenance window'}
      action={window === null ? 'Create window' : 'Save'}
      request={form.save}
      invalid={form.endsTooEarly || form.lacksSelector}
      onSubmit={() => form.save.mutate()}
      onClose={onClose}
    >
      <Input
        label="Reason"
        required
        autoFocus
        maxLength={1024}
        value={fields.reason}
        onChange={(event) => change({ reason: event.target.value })}
        hint="Visible to all operators."
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <Input
          label="Starts"
          type="datetime-local"
          required
          disabled={window !== null}
          value={fields.starts}
          onChange={(event) => change({ starts: event.target.value })}
          hint={`Time zone: ${timeZone}`}
        />
        <Input
          label="Ends"
          type="datetime-local"
          required
          value={fields.ends}
          onChange={(event) => change({ ends: event.target.value })}
          error={form.endsTooEarly ? 'Must be after the start' : null}
        />
      </div>
      {window === null ? (
        <>
          <Checkbox
            label="For every agent"
            checked={fields.everyAgent}
            onChange={(event) => change({ everyAgent: event.target.checked })}
          />
          {!fields.everyAgent && (
            <WindowSelectorField selector={fields.selector} onChange={(selector) => change({ selector })} />
          )}
        </>
      ) : (
        <p className="text-muted text-sm">
          You cannot change the start or the agents. End this window and create another instead.
        </p>
      )}
    </FormDialog>
  );
}
