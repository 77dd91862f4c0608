import { useMutation } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { arrivalsQuery, type EnrolmentToken, makeEnrolmentToken, revokeToken } from '../../api/enrollment.ts';
import { queryClient } from '../../api/query-client.ts';
import { useDraftFields } from '../use-draft-fields.ts';
import { tagsOf } from './token-state.ts';

/** Lifetimes in seconds, with their labels. The first one is the default. */
export const lifetimes = [
  [3_600, '1 hour'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
] as const;

/** Revokes a token. Ignores errors, because the token may be used up or revoked already. */
const revokeUnused = (id: string): void => void revokeToken(id).catch(() => {});

/**
 * Tracks the token that the dialog creates when it opens, because the operator did not request it: revokes it when the
 * dialog closes, unless the operator copied its command or a machine enrolled with it.
 */
function useUnaskedToken() {
  const token = useRef<Pick<EnrolmentToken, 'id' | 'created_at'> | null>(null);
  const isClosed = useRef(false);
  useEffect(() => {
    // React runs effects twice in development.
    isClosed.current = false;
    return () => {
      isClosed.current = true;
      if (token.current === null) return;
      const arrived = queryClient.getQueryData(arrivalsQuery(token.current).queryKey) ?? [];
      if (arrived.length === 0) revokeUnused(token.current.id);
      token.current = null;
    };
  }, []);
  return {
    created: (created: Pick<EnrolmentToken, 'id' | 'created_at'>) => {
      // The dialog closed before the response arrived.
      if (isClosed.current) revokeUnused(created.id);
      else token.current = created;
    },
    keep: useCallback(() => {
      token.current = null;
    }, []),
  };
}

/** Returns the token form's fields and the mutation that creates the token. */
export function useTokenForm() {
  const unasked = useUnaskedToken();
  const isUnasked = useRef(false);
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
      const unused = former.current;
      former.current = token.id;
      if (unused !== null) revokeUnused(unused);
      if (isUnasked.current) unasked.created(token);
      else unasked.keep();
      isUnasked.current = false;
    },
  });
  const { mutate } = create;
  const changeUnsaved: typeof change = (part) => {
    setSaved(false);
    change(part);
  };
  return {
    ...{ fields, change: changeUnsaved, canName, create },
    /** Creates a token with the current options. It is revoked when the dialog closes, unless `keep` is called. */
    createDefault: useCallback(() => {
      isUnasked.current = true;
      mutate();
    }, [mutate]),
    /** Keeps the token when the dialog closes. */
    keep: unasked.keep,
  };
}

export type TokenFormState = ReturnType<typeof useTokenForm>;
