import type { Secret } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { changeSecret, storeSecret } from '../../api/secrets.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { RestrictionFields } from './restriction-fields.tsx';
import { dayOf, endOfDay, isPlainHttp, kindOf, nameFault, type RestrictionKind, restrictionOf } from './secret-form.ts';
import { ValueField } from './value-field.tsx';

/** Creates or changes a secret. A stored value is never shown. */
export function SecretDialog({ secret, onClose }: { readonly secret: Secret | null; readonly onClose: () => void }) {
  const [name, setName] = useState(secret?.name ?? '');
  const [description, setDescription] = useState(secret?.description ?? '');
  const [value, setValue] = useState('');
  const [replaces, setReplaces] = useState(secret === null);
  const [day, setDay] = useState(dayOf(secret?.expires_at ?? null));
  const [kind, setKind] = useState<RestrictionKind>(kindOf(secret?.restriction ?? null));
  const [agents, setAgents] = useState<readonly string[]>(secret?.restriction?.node_ids ?? []);
  const [selector, setSelector] = useState(secret?.restriction?.tags ?? '');
  const fault = nameFault(name);
  const save = useMutation({
    mutationFn: () => {
      const body = {
        description,
        expires_at: endOfDay(day, secret?.expires_at ?? null),
        restriction: restrictionOf(kind, agents, selector),
        value: replaces ? value : null,
      };
      return secret === null ? storeSecret(name, body) : changeSecret(secret.name, body);
    },
    onSuccess: () => {
      notify(secret === null ? `Saved ${name}` : `Changed ${secret.name}`);
      onClose();
    },
  });
  const isUnencrypted = isPlainHttp(window.location.protocol, window.location.hostname);
  const isTyped = value !== '' || (secret === null && (name !== '' || description !== ''));
  return (
    <Dialog
      open
      // Escape must not discard typed values.
      lasting={isTyped}
      onOpenChange={(open) => !open && onClose()}
      title={secret === null ? 'New secret' : `Change ${secret.name}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form="secret"
            look="primary"
            busy={save.isPending}
            disabled={name === '' || fault !== null || (replaces && value === '')}
          >
            {secret === null ? 'Save secret' : 'Save'}
          </Button>
        </>
      }
    >
      <form
        id="secret"
        className="space-y-4"
        autoComplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Problem error={save.error} />
        {isUnencrypted && (
          <Callout tone="warn" title="This page uses plain HTTP">
            The value would be sent unencrypted, so the orchestrator refuses it. Open the console over HTTPS.
          </Callout>
        )}
        <NameField name={name} fault={fault} isNew={secret === null} onChange={setName} />
        <Input
          label="Description"
          value={description}
          maxLength={1024}
          onChange={(event) => setDescription(event.target.value)}
          hint="What the secret is for, and where it comes from."
        />
        {secret !== null && (
          <Checkbox
            label="Replace the value"
            hint="The stored value cannot be shown."
            checked={replaces}
            onChange={(event) => {
              setReplaces(event.target.checked);
              setValue('');
            }}
          />
        )}
        {replaces && <ValueField value={value} onChange={setValue} />}
        <Input
          label="Expires at the end of"
          type="date"
          max="9999-12-31"
          value={day}
          onChange={(event) => setDay(event.target.value)}
          hint={
            day === ''
              ? 'Never expires. If you set a date, you are notified 30 days before.'
              : 'Modules cannot use the secret after this date.'
          }
        />
        <RestrictionFields
          kind={kind}
          onKind={setKind}
          agents={agents}
          onAgents={setAgents}
          selector={selector}
          onSelector={setSelector}
        />
      </form>
    </Dialog>
  );
}

/** The name of a new secret, or how modules refer to an existing one. */
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
