import { ApiError } from '@muster/protocol/client';
import { challenge, redeemWebLogin, verify } from '@muster/protocol/http';
import { callOpenly, session } from './client.ts';
import { bytesOfHex, hexOf } from './der.ts';

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
 * With the code of `muster web-login`.
 * @throws ApiError when it was used already, or is older than a minute
 */
export async function signInWithCode(code: string): Promise<void> {
  await session.begin(callOpenly(redeemWebLogin, { body: { code } }));
}

/**
 * With a key file: its key signs the challenge here and is forgotten.
 * @param text what is in the file
 * @throws KeyFileError when it holds no key that can be used here; ApiError when the orchestrator refuses it
 */
export async function signInWithKey(text: string, passphrase: string | null): Promise<void> {
  const [{ readKeyFile }, { ed25519PublicKey, signEd25519 }] = await Promise.all([
    import('./key-file.ts'),
    import('./ed25519.ts'),
  ]);
  const seed = await readKeyFile(text, passphrase);
  try {
    const publicKey = hexOf(ed25519PublicKey(seed));
    const { nonce } = await callOpenly(challenge, { body: { public_key: publicKey } }).catch((error: unknown) => {
      throw error instanceof ApiError && error.problem.code === 'operator_unknown'
        ? new UnknownKey(publicKey, error)
        : error;
    });
    const signature = hexOf(await signEd25519(seed, bytesOfHex(nonce)));
    await session.begin(callOpenly(verify, { body: { public_key: publicKey, signature } }));
  } finally {
    seed.fill(0);
  }
}
