import type { Secret } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { changeSecret, storeSecret } from '../../api/secrets.ts';
import { notify } from '../../parts/dialog/toast.tsx';
import { useDraftFields } from '../use-draft-fields.ts';
import { dayOf, endOfDay, kindOf, nameFault, type RestrictionDraft, restrictionOf } from './secret-form.ts';

const restrictionDraft = (restriction: Secret['restriction']): RestrictionDraft => ({
  kind: kindOf(restriction),
  agents: restriction?.node_ids ?? [],
  selector: restriction?.tags ?? '',
});

/**
 * Returns a secret's fields and the mutation that creates or changes it.
 * @param secret null for a new secret
 */
export function useSecretForm(secret: Secret | null, onSaved: () => void) {
  const [fields, change] = useDraftFields({
    name: secret === null ? 'new secret' : `secret ${secret.name}`,
    initial: () => ({
      name: secret?.name ?? '',
      description: secret?.description ?? '',
      value: '',
      replaces: secret === null,
      day: dayOf(secret?.expires_at ?? null),
      restriction: restrictionDraft(secret?.restriction ?? null),
    }),
    keep: ({ name, description, day, restriction }) => ({ name, description, day, restriction }),
  });
  const { name, description, value, replaces, day, restriction } = fields;
  const fault = nameFault(name);
  const save = useMutation({
    mutationFn: () => {
      const body = {
        description,
        expires_at: endOfDay(day, secret?.expires_at ?? null),
        restriction: restrictionOf(restriction),
        value: replaces ? value : null,
      };
      return secret === null ? storeSecret(name, body) : changeSecret(secret.name, body);
    },
    onSuccess: () => {
      notify(secret === null ? `Saved ${name}` : `Changed ${secret.name}`);
      onSaved();
    },
  });
  return {
    ...{ fields, change, fault, save },
    isIncomplete: name === '' || fault !== null || (replaces && value === ''),
    isTyped: value !== '' || (secret === null && (name !== '' || description !== '')),
  };
}
