import type { Secret } from '@muster/protocol/http';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { Checkbox, Input } from '../../parts/form/field.tsx';
import { RestrictionFields } from './restriction-fields.tsx';
import { isPlainHttp } from './secret-form.ts';
import { useSecretForm } from './use-secret-form.ts';
import { ValueField } from './value-field.tsx';

/** Creates or changes a secret. Never shows the stored value. */
export function SecretDialog({ secret, onClose }: { readonly secret: Secret | null; readonly onClose: () => void }) {
  const form = useSecretForm(secret, onClose);
  const { fields, change, fault, save } = form;
  return (
    <FormDialog
      // Escape must not discard input.
      persistent={form.isTyped}
      title={secret === null ? 'New secret' : `Change ${secret.name}`}
      action={secret === null ? 'Save secret' : 'Save'}
      request={save}
      invalid={form.isIncomplete}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {isPlainHttp(window.location.protocol, window.location.hostname) && (
        <Callout tone="warn" title="This page uses plain HTTP">
          The value would be sent unencrypted, so the orchestrator refuses it. Open the console over HTTPS.
        </Callout>
      )}
      <NameField name={fields.name} fault={fault} isNew={secret === null} onChange={(name) => change({ name })} />
      <Input
        label="Description (optional)"
        value={fields.description}
        maxLength={1024}
        onChange={(event) => change({ description: event.target.value })}
        hint="Purpose and origin of the secret."
      />
      {secret !== null && (
        <Checkbox
          label="Replace the value"
          hint="The stored value cannot be shown."
          checked={fields.replaces}
          onChange={(event) => change({ replaces: event.target.checked, value: '' })}
        />
      )}
      {fields.replaces && <ValueField value={fields.value} onChange={(value) => change({ value })} />}
      <Input
        label="Expires at the end of"
        type="date"
        max="9999-12-31"
        value={fields.day}
        onChange={(event) => change({ day: event.target.value })}
        hint={
          fields.day === ''
            ? 'Never expires. If you set a date, you are notified 30 days before.'
            : 'Modules cannot use the secret after this date.'
        }
      />
      <RestrictionFields restriction={fields.restriction} onChange={(restriction) => change({ restriction })} />
    </FormDialog>
  );
}

/** The name of a new secret, or the expression that refers to an existing one. */
function NameField({
  name,
  fault,
  isNew,
  onChange,
}: {
  readonly name: string;
  readonly fault: string | null;
  readonly isNew: boolean;
  readonly onChange: (name: string) => void;
}) {
  return isNew ? (
    <Input
      label="Name"
      required
      autoFocus
      className="font-mono"
      placeholder="db_password"
      value={name}
      error={fault}
      onChange={(event) => onChange(event.target.value)}
      hint={`Reference in modules: \${{ secrets.${name === '' || fault !== null ? 'NAME' : name} }}`}
    />
  ) : (
    <div>
      <p className="mb-1 font-medium text-sm">Reference in modules</p>
      <Code text={`\${{ secrets.${name} }}`} />
    </div>
  );
}
