import type { Client } from '@muster/protocol/client';
import { redeemWebLogin } from '@muster/protocol/http';
import { serverOfOrigin } from '@muster/protocol/sign-in';
import { hexOf } from '../../../../client/src/bytes.ts';
import { signIn } from '../../../../client/src/sign-in.ts';
import { callWithoutSession, clientWithToken, session } from '../client.ts';
import type { Person } from './session.ts';

/** Signs in with a link from `muster web-login` or with a key file. */

/**
 * Redeems the code of a `muster web-login` link. The session must start only after the operator agrees: an attacker
 * could send a link that signs others in to the attacker's account, and so trick them into entering secrets there.
 * @throws ApiError if the code was used or is older than a minute
 */
export async function redeemCode(code: string): Promise<PendingSignIn> {
  const signedIn = await callWithoutSession(redeemWebLogin, { body: { code } });
  return {
    person: signedIn.operator,
    call: clientWithToken(signedIn.token),
    begin: () => session.begin(signedIn),
    refuse: () => session.end(signedIn),
  };
}

export interface PendingSignIn {
  /** The operator who signed in. After `begin`, the session state refers to the same object. */
  readonly person: Person;
  /** Calls the API with the token of this sign-in. No result may be shown before `begin`. */
  readonly call: Client;
  begin(): Promise<void>;
  /** Discards the sign-in and revokes its token. */
  refuse(): void;
}

/**
 * Signs in with a key file. The key signs the challenge in the browser and is then erased from memory. The signature
 * covers this page's origin, so that no other server can use it.
 * @param text content of the file
 * @param origin origin of this page
 * @throws KeyFileError if the file has no usable key; UnknownKey; UnboundSignIn; ApiError if the orchestrator refuses
 * the sign-in
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
    await session.begin(
      signIn({
        call: callWithoutSession,
        publicKey,
        servers: () => [serverOfOrigin(origin)],
        sign: (message) => signEd25519(seed, message),
      }),
    );
  } finally {
    seed.fill(0);
  }
}
