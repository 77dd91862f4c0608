/** Why a file cannot be used to sign in, and what to do. */
export class KeyFileError extends Error {
  /** It is locked: ask for the passphrase and read it again. */
  readonly needsPassphrase: boolean;
  constructor(message: string, needsPassphrase = false) {
    super(message);
    this.name = 'KeyFileError';
    this.needsPassphrase = needsPassphrase;
  }
}

export const wrongPassphrase = (): KeyFileError =>
  new KeyFileError('That is not the passphrase of this key. Try again.', true);

export const needsPassphrase = (): KeyFileError =>
  new KeyFileError('This key is locked with a passphrase. Type it to go on.', true);

/** Of another kind than Ed25519. */
export const otherKind = (kind: string): KeyFileError =>
  new KeyFileError(
    `This is ${kind}. Operators sign in with an Ed25519 key: make one with “muster operator init”, and have an admin add it.`,
  );

export const brokenKey = (): KeyFileError =>
  new KeyFileError('This key is not whole. Open the file itself, or paste all of it, its first and last lines too.');

/** No key is larger; whatever is was opened by mistake. */
export const mostKeyBytes = 64 * 1024;
