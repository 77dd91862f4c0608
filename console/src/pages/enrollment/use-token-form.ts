import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { makeEnrolmentToken, revokeToken } from '../../api/enrollment.ts';
import { useDraftFields } from '../use-draft-fields.ts';
import { tagsOf } from './token-state.ts';

/** Lifetimes in seconds, with their labels. The first one is the default. */
export const lifetimes = [
  [3_600, '1 hour'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
] as const;

/** Returns the token form's fields and the mutation that creates the token. */
export function useTokenForm() {
  const [isSaved, setSaved] = useState(false);
  const [fields, change] = useDraftFields({
    name: 'new token',
    initial: () => ({ uses: '1', name: '', tags: '', lifetime: String(lifetimes[0][0]), approve: true }),
    isSaved,
  });
  const { uses, name, tags, lifetime, approve } = fields;
  // The orchestrator accepts a name only for a single-use token with automatic approval.
  const canName = uses === '1' && approve;
  /** The token that the dialog showed before. Another token replaces it. */
  const former = useRef<string | null>(null);
  const create = useMutation({
    // Async, so that an invalid tag becomes the mutation's error.
    mutationFn: async () =>
      await makeEnrolmentToken({
        expires_in: Number(lifetime),
        uses: Number(uses),
        approve,
        tags: tagsOf(tags),
        ...(canName && name.trim() !== '' ? { name: name.trim() } : {}),
      }),
    onSuccess: (token) => {
      setSaved(true);
      // Ignores errors, because the former token may be used up or revoked already.
      if (former.current !== null) void revokeToken(former.current).catch(() => {});
      former.current = token.id;
    },
  });
  const changeUnsaved: typeof change = (part) => {
    setSaved(false);
    change(part);
  };
  return { fields, change: changeUnsaved, canName, create };
}

export type TokenFormState = ReturnType<typeof useTokenForm>;
