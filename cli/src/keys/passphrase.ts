import { promises } from 'node:fs';
import type { Environment } from '../directories.ts';
import { CliError, exits } from '../exit.ts';
import type { Prompter } from './prompt.ts';

export interface Passphrases {
  /**
   * Tries the passphrase from the environment. If there is none, tries up to three that the operator types.
   * @param attempt returns null for a wrong passphrase
   * @throws CliError (sign-in) if all are wrong
   */
  open<T>(path: string, attempt: (passphrase: string) => Promise<T | null>): Promise<T>;
}

/** Creates a passphrase source. It never asks if the environment contains a passphrase. */
export function createPassphrases(env: Environment, prompt: Prompter): Passphrases {
  const wrong = (path: string, remedy: string | null) =>
    new CliError(exits.signIn, 'passphrase_wrong', `wrong passphrase for ${path}`, remedy);
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
          `the operator key ${path} has a passphrase, but there is no terminal on which to ask for it`,
          'Put it in a file named by MUSTER_KEY_PASSPHRASE_FILE, or use ssh-agent.',
        );
      for (let tries = 0; tries < 3; tries++) {
        const opened = await attempt(await prompt.secret(`Passphrase of ${path}`));
        if (opened !== null) return opened;
      }
      throw wrong(path, 'A forgotten passphrase cannot be recovered: create another key, and have an admin add it.');
    },
  };
}

async function fromEnvironment(env: Environment): Promise<{ passphrase: string; variable: string } | null> {
  if (env.MUSTER_KEY_PASSPHRASE) return { passphrase: env.MUSTER_KEY_PASSPHRASE, variable: 'MUSTER_KEY_PASSPHRASE' };
  const file = env.MUSTER_KEY_PASSPHRASE_FILE;
  return file ? { passphrase: await readPassphraseFile(file), variable: 'MUSTER_KEY_PASSPHRASE_FILE' } : null;
}

/**
 * Reads a passphrase.
 * @returns the first line of the file
 */
export async function readPassphraseFile(path: string): Promise<string> {
  try {
    return (await promises.readFile(path, 'utf8')).split(/\r?\n/, 1)[0]!;
  } catch (error) {
    throw new CliError(
      exits.failed,
      'file_unreadable',
      `cannot read ${path} (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`,
      'The file must contain the passphrase on its first line.',
      { cause: error },
    );
  }
}

/** Minimum length in characters. This is the only check of new passphrases. */
const shortest = 8;

/**
 * Asks twice for a new passphrase, or reads one from a file.
 * @throws CliError if the passphrase is too short, or if there is no terminal
 */
export async function newPassphrase(prompt: Prompter, file: string | undefined): Promise<string> {
  const refuse = (why: string) =>
    new CliError(exits.failed, 'passphrase_refused', why, `Use at least ${shortest} characters; a few words are best.`);
  if (file !== undefined) {
    const passphrase = await readPassphraseFile(file);
    if (passphrase.length < shortest) throw refuse(`the first line of ${file} is too short for a passphrase`);
    return passphrase;
  }
  if (!prompt.interactive)
    throw new CliError(
      exits.usage,
      'usage',
      'there is no terminal to ask for a passphrase',
      'Put it in a file: --passphrase-file',
    );
  const first = await prompt.secret('New passphrase');
  if (first.length < shortest) throw refuse('the passphrase is too short');
  if ((await prompt.secret('Repeat the passphrase')) !== first) throw refuse('the passphrases differ');
  return first;
}
