import { useSyncExternalStore } from 'react';
import { session } from '../client.ts';
import type { Person, SessionState } from './session.ts';

export const useSession = (): SessionState => useSyncExternalStore(session.subscribe, session.state);

/**
 * Returns the signed-in operator.
 * @throws Error if no operator is signed in
 */
export function usePerson(): Person {
  const state = useSession();
  if (state.status === 'signed_out') throw new Error('no operator is signed in');
  return state.person;
}

export const useIsAdmin = (): boolean => usePerson().role === 'admin';
