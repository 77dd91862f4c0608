import { join } from 'node:path';
import { type Hello, keyStatementBytes, keyStatementLimits, keyStatementSchema } from '@muster/protocol/wire';
import { readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { type AgentKey, hexOf, keyOfPem, newKeyPem } from './agent-key.ts';

/** The previous key's signed statement about its successor. */
export type Statement = NonNullable<Hello['key_statement']>;

/** A new key that the orchestrator has not accepted yet. */
export interface NextKey {
  key: AgentKey;
  statement: Statement;
}

export const nextKeyPath = (dataDir: string): string => join(dataDir, 'agent.key.next');

/**
 * Creates a new key, signed by the current key, and stores it on disk until the agent presents it.
 * @param graceSecs how long the current key stays valid after the change
 * @param now Unix seconds
 * @throws Error with code EEXIST if a new key is already pending
 */
export function makeNextKey(dataDir: string, current: AgentKey, graceSecs: number, now: number): NextKey {
  if (!Number.isInteger(graceSecs) || graceSecs < 0 || graceSecs > keyStatementLimits.longestGraceSecs)
    throw new RangeError(`${graceSecs} s is not a valid grace period for the previous key`);
  const path = nextKeyPath(dataDir);
  const key = keyOfPem(newKeyPem(), path);
  const formerUntil = now + graceSecs;
  const bytes = keyStatementBytes({ formerKey: current.publicKey, key: key.publicKey, madeAt: now, formerUntil });
  const statement: Statement = {
    former_key: hexOf(current),
    made_at: now,
    former_until: formerUntil,
    signature: current.sign(bytes).toString('hex'),
  };
  writePrivateFile(path, `${JSON.stringify({ private_key: key.pem, statement })}\n`, 'keep');
  return { key, statement };
}

/**
 * Reads the pending new key.
 * @returns null if no key is pending
 * @throws Error if `makeNextKey` did not write the file
 */
export function readNextKey(dataDir: string): NextKey | null {
  const path = nextKeyPath(dataDir);
  const text = readPrivateFile(path);
  if (text === null) return null;
  try {
    const { private_key, statement } = JSON.parse(text) as { private_key: string; statement: unknown };
    return { key: keyOfPem(private_key, path), statement: keyStatementSchema.parse(statement) };
  } catch {
    throw new Error(`${path} is damaged; remove it, and run again: muster agent rotate-key`);
  }
}
