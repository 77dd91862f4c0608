import { ConfigError } from '../config/faults.ts';
import type { Given } from './command.ts';
import { askPassphrase, identitiesOf, type Lock, type Openers, passphraseOf, refuseWeak } from './encryption.ts';

/** Options of the commands that encrypt and decrypt files. */

export const openerOptions = {
  'passphrase-file': { type: 'string' },
  identity: { type: 'string', multiple: true },
} as const;

export const list = (given: Given[string]): string[] => (Array.isArray(given) ? given.map(String) : []);
export const text = (given: Given[string]): string | null => (typeof given === 'string' ? given : null);

export interface PassphraseUse {
  /** Describes the encrypted file in the prompt. */
  readonly what: string;
  /** Environment variable that can contain the passphrase. */
  readonly variable: string;
}

/**
 * Returns how to encrypt a file according to the options.
 * @param prompts whether to prompt for a passphrase if neither the options nor the environment contain one
 * @returns null if there is neither a recipient nor a passphrase
 * @throws ConfigError, LockError
 */
export async function lockOf(
  given: Given,
  env: NodeJS.ProcessEnv,
  { what, variable }: PassphraseUse,
  prompts: boolean,
): Promise<Lock> {
  const recipients = list(given.recipient);
  const file = text(given['passphrase-file']);
  if (recipients.length > 0) {
    if (file !== null || given.encrypt === true)
      throw new ConfigError('--recipient cannot be combined with a passphrase');
    return { recipients };
  }
  if (file !== null) return { passphrase: refuseWeak(passphraseOf(file)) };
  const value = env[variable];
  if (value !== undefined && value !== '') return { passphrase: refuseWeak(value) };
  if (!prompts) return null;
  const passphrase = refuseWeak(await askPassphrase(`Passphrase for ${what}: `, variable));
  if ((await askPassphrase('Repeat the passphrase: ', variable)) !== passphrase)
    throw new ConfigError('the passphrases do not match');
  return { passphrase };
}

/** Returns how to decrypt a file according to the options. */
export function openersOf(given: Given, env: NodeJS.ProcessEnv, { what, variable }: PassphraseUse): Openers {
  const file = text(given['passphrase-file']);
  const value = env[variable];
  return {
    identities: list(given.identity).flatMap(identitiesOf),
    passphrase: async () =>
      file !== null ? passphraseOf(file) : value ? value : askPassphrase(`Passphrase for ${what}: `, variable),
  };
}
