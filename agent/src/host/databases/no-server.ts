import { HostFailure } from '../failure.ts';

/** Why no statement can be executed. */
export type NoServer = {
  kind: 'programs' | 'databases';
  message: string;
  /** Whether the program or database does not exist, so that nothing can be in it. */
  gone: boolean;
};

/**
 * Refuses to decide about a server that does not answer. A plan and an apply may still wait for it, if they need
 * something to be there.
 * @throws HostFailure with the reason
 */
export function expectAnswer(missing: NoServer | null, mayWait: boolean): void {
  if (missing !== null && !missing.gone && !mayWait) throw new HostFailure(missing.message);
}

export const goneMessage = 'its server or database does not exist anymore, so nothing is left to restore';
