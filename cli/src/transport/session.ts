import { hash } from 'node:crypto';
import { promises, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError, type Client } from '@muster/protocol/client';
import { renew } from '@muster/protocol/http';
import { signIn as signInWithKey, UnboundSignIn, UnknownKey } from '../../../client/src/sign-in.ts';
import { cacheDirectory, type Environment, writePrivateFile } from '../directories.ts';
import { CliError, exits } from '../exit.ts';
import type { OperatorKey } from '../keys/key.ts';

/** A stored session token. Times are Unix seconds. */
export interface Token {
  token: string;
  issued_at: number;
  expires_at: number;
}

/** Stores one operator's token for one address. */
export interface TokenStore {
  read(): Promise<Token | null>;
  write(token: Token): Promise<void>;
  drop(): Promise<void>;
}

function tokenPath(env: Environment, url: string, operatorId: string): string {
  const name = hash('sha256', `${url}\n${operatorId}`).slice(0, 32);
  return join(cacheDirectory(env), 'sessions', `${name}.json`);
}

/**
 * Returns how the server that issued the stored token was verified, as `trustName` returns it; null if no token is
 * stored.
 */
export async function lastTrustOf(env: Environment, url: string, operatorId: string): Promise<string | null> {
  try {
    const { trust } = JSON.parse(await promises.readFile(tokenPath(env, url, operatorId), 'utf8')) as {
      trust: unknown;
    };
    return typeof trust === 'string' ? trust : null;
  } catch {
    return null;
  }
}

/**
 * Returns a token store in files with mode 0600, one for each operator and address. An invalid file is treated as
 * missing.
 * @param trust how the server was verified; tokens from a server that was verified differently are ignored
 */
export function tokenFile(
  env: Environment,
  url: string,
  operatorId: string,
  trust: () => string | Promise<string>,
): TokenStore {
  const path = tokenPath(env, url, operatorId);
  return {
    async read() {
      try {
        const { token, issued_at, expires_at, ...stored } = JSON.parse(readFileSync(path, 'utf8')) as Record<
          string,
          unknown
        >;
        if (stored.trust !== (await trust())) return null;
        if (typeof token !== 'string' || typeof issued_at !== 'number' || typeof expires_at !== 'number') return null;
        return { token, issued_at, expires_at };
      } catch {
        return null;
      }
    },
    write: async (token) =>
      writePrivateFile(path, `${JSON.stringify({ url, operator_id: operatorId, trust: await trust(), ...token })}\n`),
    drop: () => promises.rm(path, { force: true }),
  };
}

const notOffered = (cause: unknown) =>
  new CliError(
    exits.signIn,
    'sign_in_not_offered',
    'this orchestrator does not support sign-ins bound to its address; nothing was signed',
    'Upgrade the orchestrator. If it is up to date, another server answers at this address.',
    { cause },
  );

/** Decides whether to use a token, renew it, or sign in. */
export function judgeToken(token: Token | null, now: number): 'use' | 'renew' | 'sign_in' {
  if (token === null) return 'sign_in';
  const left = token.expires_at - now;
  // If the clock was set back, an expired token looks valid, and the server responds with 401.
  if (left <= 30) return 'sign_in';
  return left < (token.expires_at - token.issued_at) / 4 ? 'renew' : 'use';
}

export interface Session {
  /** Returns a valid token. Signs in or renews the token if necessary. */
  token(): Promise<string>;
  /** Signs in even if the stored token is valid. */
  signIn(): Promise<Token>;
  /** Reports whether there is a token that has probably not expired. */
  isOpen(): Promise<boolean>;
  /** Deletes the stored token after the server refused it. */
  forget(): Promise<void>;
}

export interface SessionOptions {
  key: () => Promise<OperatorKey>;
  store: (key: OperatorKey) => TokenStore;
  /** Creates a client that uses this token, or none. */
  client: (token: string | null) => Client;
  /**
   * Returns the names of the server that the client last connected to, for use in signatures; preferred names first.
   */
  servers: () => readonly string[];
  /** Unix seconds. */
  now: () => number;
}

export function openSession({ key, store, client, servers, now }: SessionOptions): Session {
  let current: Token | null = null;

  const keep = async (fresh: { token: string; expires_at: number }): Promise<Token> => {
    current = { token: fresh.token, expires_at: fresh.expires_at, issued_at: now() };
    await store(await key()).write(current);
    return current;
  };

  const signIn = async (): Promise<Token> => {
    const mine = await key();
    const { publicKey, path } = mine;
    try {
      return await keep(
        await signInWithKey({ call: client(null), publicKey, servers, sign: (message) => mine.sign(message) }),
      );
    } catch (error) {
      if (error instanceof UnboundSignIn) throw notOffered(error);
      if (!(error instanceof UnknownKey)) throw error;
      throw new CliError(
        exits.signIn,
        'operator_unknown',
        `the key ${path} does not belong to an operator of this orchestrator`,
        `Name another key with --key-file, or ask an admin to add the public key ${publicKey}. If the operator was removed, that key cannot be added again: create another with muster operator init --force.`,
        { cause: error.cause },
      );
    }
  };

  let opening: Promise<string> | null = null;
  const openOnce = async (): Promise<string> => {
    current ??= await store(await key()).read();
    const verdict = judgeToken(current, now());
    if (current !== null && verdict === 'use') return current.token;
    if (current !== null && verdict === 'renew') {
      try {
        return (await keep(await client(current.token)(renew, {}))).token;
      } catch (error) {
        // Signs in with the key, because the token is too old or was revoked.
        if (!(error instanceof ApiError)) throw error;
      }
    }
    return (await signIn()).token;
  };

  return {
    token() {
      // Concurrent calls share one sign-in, because each of them would otherwise ask for the passphrase.
      opening ??= openOnce().finally(() => {
        opening = null;
      });
      return opening;
    },
    signIn,
    async isOpen() {
      current ??= await store(await key()).read();
      return current !== null && judgeToken(current, now()) !== 'sign_in';
    },
    async forget() {
      current = null;
      await store(await key()).drop();
    },
  };
}
