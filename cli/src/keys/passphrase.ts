import { readFile } from 'node:fs/promises';
import type { Environment } from '../directories.ts';
import { CliError, exits } from '../exit.ts';
import type { Prompter } from './prompt.ts';

/** Where the passphrase of a key comes from. */
export interface Passphrases {
  /**
   * Tries what is to be tried: the one that the environment names, else what a person types, three times.
   * @param attempt null: not this one
   * @throws CliError (sign-in) when none opens it
   */
  open<T>(path: string, attempt: (passphrase: string) => Promise<T | null>): Promise<T>;
}

/** The variables first: where they are set, nobody is asked. */
export function createPassphrases(env: Environment, prompt: Prompter): Passphrases {
  const wrong = (path: string, remedy: string | null) =>
    new CliError(exits.signIn, 'passphrase_wrong', `that is not the passphrase of ${path}`, remedy);
  return {
    async open(path, attempt) {
      const given = await fromEnvironment(env);
      if (given !== null) {
        const opened = await attempt(given.passphrase);
        if (opened === null) throw wrong(path, `It came from ${given.variable}.`);
        return opened;
      }
      if (!prompt.interactive)
        throw new CliError(
          exits.signIn,
          'key_locked',
          `the operator key ${path} has a passphrase, and nobody is here to type it`,
          'Name a file that holds it in MUSTER_KEY_PASSPHRASE_FILE, or keep the key in ssh-agent.',
        );
      for (let tries = 0; tries < 3; tries++) {
        const opened = await attempt(await prompt.secret(`Passphrase of ${path}`));
        if (opened !== null) return opened;
      }
      throw wrong(path, 'A forgotten passphrase cannot be found again: make another key, and have an admin add it.');
    },
  };
}

async function fromEnvironment(env: Environment): Promise<{ passphrase: string; variable: string } | null> {
  if (env.MUSTER_KEY_PASSPHRASE) return { passphrase: env.MUSTER_KEY_PASSPHRASE, variable: 'MUSTER_KEY_PASSPHRASE' };
  const file = env.MUSTER_KEY_PASSPHRASE_FILE;
  return file ? { passphrase: await readPassphraseFile(file), variable: 'MUSTER_KEY_PASSPHRASE_FILE' } : null;
}

/** @returns its first line */
export async function readPassphraseFile(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).split(/\r?\n/, 1)[0]!;
  } catch (error) {
    throw new CliError(
      exits.failed,
      'file_unreadable',
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`,
      'It is to hold the passphrase.',
      { cause: error },
    );
  }
}

/** What nobody should be able to guess: a length is all that can be asked for. */
const shortest = 8;

/**
 * A new passphrase, typed twice or out of a file.
 * @throws CliError when it is too short, or nobody can be asked
 */
export async function newPassphrase(prompt: Prompter, file: string | undefined): Promise<string> {
  const refuse = (why: string) =>
    new CliError(exits.failed, 'passphrase_refused', why, `At least ${shortest} characters; a few words are best.`);
  if (file !== undefined) {
    const passphrase = await readPassphraseFile(file);
    if (passphrase.length < shortest) throw refuse(`the first line of ${file} is too short for a passphrase`);
    return passphrase;
  }
  if (!prompt.interactive)
    throw new CliError(
      exits.usage,
      'usage',
      'nobody is here to type a passphrase',
      'Name a file that holds it: --passphrase-file',
    );
  const first = await prompt.secret('New passphrase');
  if (first.length < shortest) throw refuse('that is too short for a passphrase');
  if ((await prompt.secret('The same again')) !== first) throw refuse('these were two different ones');
  return first;
}
