import { hash } from 'node:crypto';

/** The agent's objects next to a directory that it creates or replaces as a unit. */
export type Beside = 'new' | 'old' | 'before' | 'list';

/**
 * Returns the name of an object next to `name`: the tree that is being created, the one that is being removed, the
 * original object, or the list of the entries that the agent created.
 */
export const besideName = (name: string, beside: Beside): string =>
  `.muster-${hash('sha256', name, 'hex').slice(0, 20)}.${beside}`;

/** Matches names of objects that belong to the agent. */
export const agentName = /^\.muster-[0-9a-f]{20}\.(tmp|new|old|before|list)$/;
