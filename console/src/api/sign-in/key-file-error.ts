/** Explains why a file cannot be used to sign in, with advice for the operator. */
export class KeyFileError extends Error {
  /** Whether the key is encrypted, so that it can be read again with a passphrase. */
  readonly needsPassphrase: boolean;
  constructor(message: string, needsPassphrase = false) {
    super(message);
    this.name = 'KeyFileError';
    this.needsPassphrase = needsPassphrase;
  }
}

export const wrongPassphrase = (): KeyFileError => new KeyFileError('The passphrase is wrong. Try again.', true);

export const needsPassphrase = (): KeyFileError =>
  new KeyFileError('This key is encrypted. Type its passphrase to continue.', true);

export const otherKind = (kind: string): KeyFileError =>
  new KeyFileError(
    `This is ${kind}. Operators sign in with an Ed25519 key. Create one with “muster operator init”, and ask an admin to add it.`,
  );

export const brokenKey = (): KeyFileError =>
  new KeyFileError('This key is incomplete. Open the file itself, or paste all of it with its first and last lines.');

/** Maximum size of a key file in bytes. No key is larger. */
export const maxKeyBytes = 64 * 1024;
