import { ApiError } from '@muster/protocol/client';
import { challenge, redeemWebLogin, verify } from '@muster/protocol/http';
import { serverOfOrigin, signInBytes } from '@muster/protocol/sign-in';
import { callWithoutSession, session } from '../client.ts';
import { hexOf } from './der.ts';
import type { Person } from './session.ts';

/** Sign-in with a link of `muster web-login` or with a key file. */

/** The key is valid, but the orchestrator does not know it. */
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
 * Redeems the code of `muster web-login`. The session must begin only after the person agrees: an attacker could send a
 * link that signs others in to the attacker's account, so that they type secrets there.
 * @throws ApiError if the code was used or is older than a minute
 */
export async function redeemCode(code: string): Promise<PendingSignIn> {
  const signedIn = await callWithoutSession(redeemWebLogin, { body: { code } });
  return {
    person: signedIn.operator,
    begin: () => session.begin(signedIn),
    refuse: () => session.end(signedIn),
  };
}

/** A sign-in session that waits for the person's consent. */
export interface PendingSignIn {
  readonly person: Person;
  begin(): Promise<void>;
  /** Also ends the session at the orchestrator. */
  refuse(): void;
}

/**
 * Signs in with a key file. The key signs the challenge in the browser and is then erased. The signature includes the
 * origin of this page, so no other server can use it.
 * @param text the content of the file
 * @param origin of this page
 * @throws KeyFileError if the file has no usable key; ApiError if the orchestrator refuses it
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
      throw new Error(
        'This orchestrator does not support sign-ins bound to its address. Nothing was signed. Upgrade it.',
      );
    const server = serverOfOrigin(origin);
    const signature = hexOf(await signEd25519(seed, signInBytes({ server, publicKey, nonce })));
    await session.begin(callWithoutSession(verify, { body: { public_key: publicKey, signature, server, nonce } }));
  } finally {
    seed.fill(0);
  }
}
