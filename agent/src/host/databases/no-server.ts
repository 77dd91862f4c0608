import { HostFailure } from '../failure.ts';

/** Why no statement can be executed. */
export type NoServer = {
  kind: 'programs' | 'databases';
  message: string;
  /** Whether the program or database does not exist, so that it cannot contain anything. */
  gone: boolean;
};

/**
 * Throws if a server exists but does not respond, because its state is unknown. Plans and applies may instead wait for
 * the server if they need something to exist on it.
 * @throws HostFailure with the reason
 */
export function expectAnswer(missing: NoServer | null, mayWait: boolean): void {
  if (missing !== null && !missing.gone && !mayWait) throw new HostFailure(missing.message);
}

export const goneMessage = 'its server or database no longer exists, so nothing is left to restore';
