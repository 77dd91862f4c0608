import { useSyncExternalStore } from 'react';
import { session } from '../client.ts';
import type { Person, SessionState } from './session.ts';

export const useSession = (): SessionState => useSyncExternalStore(session.subscribe, session.state);

/** The signed-in operator. @throws Error without a sign-in session */
export function usePerson(): Person {
  const state = useSession();
  if (state.status === 'signed_out') throw new Error('nobody is signed in');
  return state.person;
}

export const useIsAdmin = (): boolean => usePerson().role === 'admin';
