import { useSyncExternalStore } from 'react';
import { linkedSignIn } from './sign-in-link.ts';

/** Returns the sign-in from the latest link; null if there is none. */
export const useLinkedSignIn = () => useSyncExternalStore(linkedSignIn.subscribe, linkedSignIn.state);
