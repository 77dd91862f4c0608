import { ApiError } from '@muster/protocol/client';
import { challenge, redeemWebLogin, verify } from '@muster/protocol/http';
import { serverOfOrigin, signInBytes } from '@muster/protocol/sign-in';
import { callWithoutSession, session } from '../client.ts';
import { hexOf } from './der.ts';
import type { Person } from './session.ts';

/** The two ways into the console. */

/** The key is one, but nobody's here. */
export class UnknownKey extends Error {
  /** 64 hexadecimal characters. */
  readonly publicKey: string;
  constructor(publicKey: string, cause: unknown) {
    super('This orchestrator does not know this key, or its operator was removed.', { cause });
    this.name = 'UnknownKey';
    this.publicKey = publicKey;
  }
}

/**
 * Redeems the code of `muster web-login`. The session begins only once the person agrees: whoever made the link may want
 * somebody else to work, and type secrets, in an account of theirs.
 * @returns the session, held back
 * @throws ApiError when it was used already, or is older than a minute
 */
export async function redeemCode(code: string): Promise<PendingSignIn> {
  const signedIn = await callWithoutSession(redeemWebLogin, { body: { code } });
  return {
    person: signedIn.operator,
    begin: () => session.begin(signedIn),
    refuse: () => session.end(signedIn),
  };
}

/** A session that waits for a person to say yes. */
export interface PendingSignIn {
  readonly person: Person;
  begin(): Promise<void>;
  /** Ends it at the orchestrator too. */
  refuse(): void;
}

/**
 * With a key file: its key signs the challenge here and is forgotten. The signature names the origin of this page, so it
 * is of no use to another server.
 * @param text   what is in the file
 * @param origin of this page
 * @throws KeyFileError when it holds no key that can be used here; ApiError when the orchestrator refuses it
 */
export async function signInWithKey(
  text: string,
  passphrase: string | null,
  origin = window.location.origin,
): Promise<void> {
  const [{ readKeyFile }, { ed25519PublicKey, signEd25519 }] = await Promise.all([
    import('./key-file.ts'),
    import('./ed25519.ts'),
  ]);
  const seed = await readKeyFile(text, passphrase);
  try {
    const publicKey = hexOf(ed25519PublicKey(seed));
    const { nonce, form } = await callWithoutSession(challenge, { body: { public_key: publicKey, form: 2 } }).catch(
      (error: unknown) => {
        throw error instanceof ApiError && error.problem.code === 'operator_unknown'
          ? new UnknownKey(publicKey, error)
          : error;
      },
    );
    if (form !== 2)
      throw new Error('This orchestrator does not offer sign-ins that are bound to it. Nothing was signed.');
    const server = serverOfOrigin(origin);
    const signature = hexOf(await signEd25519(seed, signInBytes({ server, publicKey, nonce })));
    await session.begin(callWithoutSession(verify, { body: { public_key: publicKey, signature, server, nonce } }));
  } finally {
    seed.fill(0);
  }
}
