import { challenge, redeemWebLogin, verify } from '@muster/protocol/http';
import { callOpenly, session } from './client.ts';
import { ed25519PublicKey, signEd25519 } from './ed25519.ts';
import { readKeyFile } from './key-file.ts';
import { queryClient } from './query-client.ts';
import type { Token } from './session.ts';

/** The two ways into the console. */

/** Whatever is kept of another person goes before the new one sees anything. */
async function begin(token: Token): Promise<void> {
  const { same } = await session.begin(token);
  if (!same) queryClient.clear();
}

/**
 * With the code of `muster web-login`.
 * @throws ApiError when it was used already, or is older than a minute
 */
export async function signInWithCode(code: string): Promise<void> {
  await begin(await callOpenly(redeemWebLogin, { body: { code } }));
}

/**
 * With a key file: its key signs the challenge here and is forgotten.
 * @param text what is in the file
 * @throws KeyFileError when it holds no key that can be used here; ApiError when the orchestrator refuses it
 */
export async function signInWithKey(text: string, passphrase: string | null): Promise<void> {
  const seed = await readKeyFile(text, passphrase);
  try {
    const publicKey = hexOf(await ed25519PublicKey(seed));
    const { nonce } = await callOpenly(challenge, { body: { public_key: publicKey } });
    const signature = hexOf(await signEd25519(seed, bytesOf(nonce)));
    await begin(await callOpenly(verify, { body: { public_key: publicKey, signature } }));
  } finally {
    seed.fill(0);
  }
}

const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

const bytesOf = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
