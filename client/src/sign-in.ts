import { ApiError, type Client } from '@muster/protocol/client';
import { challenge, verify } from '@muster/protocol/http';
import { signInBytes } from '@muster/protocol/sign-in';
import { hexOf } from './bytes.ts';

/**
 * The orchestrator does not support sign-ins that are bound to its address, or a different server responds there.
 * Nothing was signed.
 */
export class UnboundSignIn extends Error {
  constructor(cause?: unknown) {
    super(
      'This orchestrator does not support sign-ins bound to its address. Nothing was signed. Upgrade the orchestrator.',
      {
        cause,
      },
    );
    this.name = 'UnboundSignIn';
  }
}

/** The key is unknown to the orchestrator, or the operator with this key was removed. */
export class UnknownKey extends Error {
  /** Public key as 64 lower-case hexadecimal characters. */
  readonly publicKey: string;
  constructor(publicKey: string, cause: unknown) {
    super('The orchestrator does not know this key, or its operator was removed.', { cause });
    this.name = 'UnknownKey';
    this.publicKey = publicKey;
  }
}

export interface SignInParts {
  /** Sends requests to the orchestrator without a session. */
  readonly call: Client;
  /** Public key as 64 lower-case hexadecimal characters. */
  readonly publicKey: string;
  /** Returns the server names that the signature may contain, best first. Called after the challenge arrives. */
  readonly servers: () => readonly string[];
  /** Returns the 64 bytes of an Ed25519 signature. */
  readonly sign: (message: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>;
}

/**
 * Signs in with an operator's key. Signs only messages that contain the server's name as this client sees it. There is
 * no fallback to signatures of a bare nonce, because a server could use such a signature at another orchestrator.
 * @throws UnboundSignIn, UnknownKey; ApiError if the orchestrator refuses
 */
export async function signIn({ call, publicKey, servers, sign }: SignInParts) {
  const { nonce, form } = await call(challenge, { body: { public_key: publicKey, form: 2 } }).catch(
    (error: unknown) => {
      throw challengeFailure(error, publicKey);
    },
  );
  if (form !== 2 || !/^[0-9a-f]{64}$/.test(nonce)) throw new UnboundSignIn();
  const [first, ...others] = servers();
  if (first === undefined) throw new Error('no server name is known for this connection');
  const answer = async (server: string) => {
    const signature = hexOf(await sign(signInBytes({ server, publicKey, nonce })));
    return await call(verify, { body: { public_key: publicKey, signature, server, nonce } });
  };
  let answered = answer(first);
  for (const server of others)
    answered = answered.catch((error: unknown) => {
      if (error instanceof ApiError && error.problem.code === 'sign_in_server_unknown') return answer(server);
      throw error;
    });
  return await answered.catch((error: unknown) => {
    throw challengeFailure(error, publicKey);
  });
}

function challengeFailure(error: unknown, publicKey: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, errors } = error.problem;
  // Orchestrators that predate bound sign-ins reject the `form` field.
  if (code === 'invalid_input' && errors?.some(({ path }) => path === '/form')) return new UnboundSignIn(error);
  return code === 'operator_unknown' ? new UnknownKey(publicKey, error) : error;
}
