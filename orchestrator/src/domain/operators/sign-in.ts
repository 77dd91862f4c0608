import { createHash, verify as verifySignature } from 'node:crypto';
import { idOfKey, MusterError } from '@muster/protocol';
import type { Role } from '@muster/protocol/http';
import { signInBytes } from '@muster/protocol/sign-in';
import type { Clock } from '../../../../lib/src/clock.ts';
import { networkOf } from '../../client-network.ts';
import { publicKeyFromRaw } from '../../identity/ed25519-key.ts';
import {
  consumeWebCode,
  deleteSession,
  insertSession,
  insertWebCode,
  liveOperator,
  liveSession,
  operatorById,
  sessionByHash,
  unboundSessions,
  webCodeByHash,
} from '../../store/queries/operators.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import type { Refusals } from '../audit/refusals.ts';
import { inSession } from '../shared/acting.ts';
import { type Actor, type Context, seconds, systemActor } from '../shared/context.ts';
import { operatorKey } from './operators.ts';
import { BareNonces, BoundNonces } from './sign-in-nonces.ts';

/** A live session, as every signed-in request carries it. */
export interface Session {
  token_hash: string;
  operator_id: string;
  username: string;
  role: Role;
  /** Unix seconds. */
  expires_at: number;
  signed_in_at: number;
}

export const actorOf = (session: Pick<Session, 'operator_id' | 'username'>): Actor => ({
  type: 'operator',
  id: session.operator_id,
  name: session.username,
});

/** Actor of a session. Its changes are only written while the session is live. */
export const actorIn = (session: Pick<Session, 'operator_id' | 'username' | 'token_hash'>): Actor => ({
  ...actorOf(session),
  session: session.token_hash,
});

/** How long after the signature a session can be renewed. */
const renewableSecs = 12 * 3600;
/** How long a browser sign-in code is valid. */
const webCodeSecs = 60;
/** Maximum number of sessions kept in memory; others are read from the database. */
const cachedSessions = 10_000;

export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export interface SignedIn {
  readonly token: string;
  readonly expires_at: number;
  readonly operator: Pick<Session, 'operator_id' | 'username' | 'role'>;
}

/** Where a request comes from. */
export interface From {
  readonly ip: string;
  /** The client is on this machine. */
  readonly loopback: boolean;
}
const nowhere: From = { ip: '', loopback: false };

/** The data that a bound signature covers, besides the key. */
export interface Bound {
  readonly server: string;
  /** 64 lower-case hexadecimal characters. */
  readonly nonce: string;
}

export interface SignInRules {
  /** Lifetime of a token in seconds. */
  readonly tokenLifeSecs: number;
  /** Refuse signatures that do not name the server, and sessions opened by such signatures. */
  readonly requireBound: boolean;
  /** Whether a server named in a signature is this one. */
  isOwnServer(server: string, loopback: boolean): boolean;
}

export interface SignIn {
  /**
   * @param bound the signature will name the server
   * @throws MusterError key_invalid, operator_unknown, sign_in_unbound
   */
  challenge(publicKey: string, bound?: boolean, from?: From): Promise<{ nonce: string }>;
  /**
   * @param bound null: the signature is over the nonce alone
   * @throws MusterError key_invalid, signature_malformed, signature_invalid, sign_in_unbound, sign_in_server_unknown
   */
  verify(publicKey: string, signature: string, bound?: Bound | null, from?: From): Promise<SignedIn>;
  /** The live session under the SHA-256 (hex) of a token, or null. */
  find(tokenHash: string): Session | null | Promise<Session | null>;
  /** @throws MusterError unauthenticated, when the signature was given too long ago */
  renew(tokenHash: string): Promise<{ token: string; expires_at: number }>;
  logout(tokenHash: string): Promise<void>;
  /** A single-use code that a browser exchanges for its own session. @throws MusterError unauthenticated */
  webCode(tokenHash: string): Promise<string>;
  /** @throws MusterError login_code_invalid */
  redeem(code: string, ip?: string): Promise<SignedIn>;
  /**
   * Ends the sessions whose signature named no server. Call it when `requireBound` is set.
   * @returns the number of ended sessions
   */
  endUnbound(): Promise<number>;
  close(): void;
}

/** A session, and 1 if its signature named this server. */
type KeptSession = Session & { readonly bound: number };

export function createSignIn(
  context: Context,
  refusals: Pick<Refusals, 'record'>,
  rules: SignInRules,
  clock: Pick<Clock, 'monotonic'>,
): SignIn {
  const { db } = context;
  const boundNonces = new BoundNonces(context.randomBytes(32));
  const bareNonces = new BareNonces();
  const cache = new Map<string, KeptSession>();
  /** Counts ended sessions: a row read before an end is not cached after it. */
  let removals = 0;

  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type !== 'operator_removed') return;
    removals++;
    bareNonces.forget(hint.operator_id);
    for (const [hash, session] of cache) if (session.operator_id === hint.operator_id) cache.delete(hash);
  });

  /** Resolves once the streams and terminals of the session have ended. */
  const ended = async (tokenHash: string, renewedAs: string | null) => {
    removals++;
    cache.delete(tokenHash);
    context.bus.publish({ type: 'session_ended', token_hash: tokenHash, renewed_as: renewedAs });
    await context.bus.delivered();
  };

  const remember = (session: KeptSession) => {
    if (cache.size >= cachedSessions) cache.delete(cache.keys().next().value as string);
    cache.set(session.token_hash, session);
  };

  const refuse = (
    operator: { operator_id: string; username: string } | undefined,
    code:
      | 'operator_unknown'
      | 'signature_invalid'
      | 'login_code_invalid'
      | 'sign_in_unbound'
      | 'sign_in_server_unknown',
    why: string,
    ip: string,
    keyId?: string,
  ) =>
    refusals.record({
      type: 'auth.refused',
      who: operator ? 'claimed' : 'stranger',
      actor: operator ? actorOf(operator) : systemActor,
      summary: `sign-in refused: ${why}`,
      code,
      ip,
      ...(keyId === undefined ? {} : { metadata: { key_id: keyId } }),
      same: { of: `${operator?.operator_id ?? ''} ${why}`, anywhere: false },
    });

  const isRefused = ({ bound }: { bound: number }) => bound === 0 && rules.requireBound;

  /** @param ways further statements: preconditions, and the sign-in event */
  const issue = async (
    { operator_id, username, role }: SignedIn['operator'],
    signedInAt: number,
    bound: number,
    ways: readonly Statement[],
  ): Promise<SignedIn> => {
    const token = context.randomBytes(32).toString('base64url');
    const now = seconds(context.now());
    const session = {
      token_hash: hashOfToken(token),
      operator_id,
      signed_in_at: signedInAt,
      bound,
      expires_at: Math.min(now + rules.tokenLifeSecs, signedInAt + renewableSecs + rules.tokenLifeSecs),
    };
    await db.write({
      name: 'auth/issue session',
      statements: [
        // In the same transaction: an operator removed concurrently gets no session.
        statement(liveOperator, { operator_id }, { expect: 'row', else: 'unauthenticated' }),
        statement(insertSession, { ...session, created_at: now }),
        ...ways,
      ],
    });
    return { token, expires_at: session.expires_at, operator: { operator_id, username, role } };
  };
  const signedIn = (operator: Parameters<typeof actorOf>[0], how: string, metadata?: Record<string, unknown>) =>
    audited(context, {
      type: 'auth.signed_in',
      actor: actorOf(operator),
      summary: `${operator.username} signed in${how}`,
      ...(metadata ? { metadata } : {}),
    });

  /** Reads from the database. Reads again when a session ended meanwhile, which may have been this one. */
  const read = async (tokenHash: string): Promise<KeptSession | null> => {
    for (;;) {
      const seen = removals;
      const row = await db.get(sessionByHash, { token_hash: tokenHash });
      if (!row || row.removed_at !== null || row.expires_at <= seconds(context.now()) || isRefused(row)) return null;
      if (seen !== removals) continue;
      const { removed_at: _, ...session } = row;
      remember(session);
      return session;
    }
  };

  const requireBound = async (bound: boolean, { ip }: From) => {
    if (bound || !rules.requireBound) return;
    // Checked before the key is looked up, so that known and unknown keys get the same answer.
    await refuse(undefined, 'sign_in_unbound', 'the signature would not name this server', ip);
    throw new MusterError('sign_in_unbound');
  };

  /** @returns the details of the sign-in event once the nonce is used up; null when the signature does not verify */
  const judgeBound = async (operatorId: string, key: Buffer, signature: Buffer, bound: Bound, from: From) => {
    const { server } = bound;
    const now = clock.monotonic();
    const nonce = Buffer.from(bound.nonce, 'hex');
    const signed = signInBytes({ server, publicKey: key.toString('hex'), nonce: bound.nonce });
    const good =
      boundNonces.isLive(operatorId, nonce, now) && verifySignature(null, signed, publicKeyFromRaw(key), signature);
    if (!rules.isOwnServer(server, from.loopback)) {
      // The signature is valid for another server, which may be relaying sign-ins.
      if (good) {
        const operator = await db.get(operatorById, { operator_id: operatorId });
        await refuse(operator, 'sign_in_server_unknown', `the signature is for ${server}`, from.ip, operatorId);
      }
      throw new MusterError('sign_in_server_unknown', `the signature is for ${server}, which is not this orchestrator`);
    }
    if (!good) return null;
    boundNonces.spend(nonce, now);
    return { how: '', metadata: { bound: true, server } };
  };
  const judgeBare = (operatorId: string, key: Buffer, signature: Buffer, { ip }: From) => {
    const now = clock.monotonic();
    const keyObject = publicKeyFromRaw(key);
    const answered = bareNonces
      .candidates(operatorId, networkOf(ip), now)
      .find((nonce) => verifySignature(null, nonce, keyObject, signature));
    if (answered === undefined) return null;
    bareNonces.spend(operatorId, answered, now);
    return { how: ' by a signature that names no server', metadata: { bound: false } };
  };

  return {
    async challenge(publicKey, bound = false, from = nowhere) {
      await requireBound(bound, from);
      const operatorId = await idOfKey(operatorKey(publicKey));
      const operator = await db.get(operatorById, { operator_id: operatorId });
      if (!operator || operator.removed_at !== null) {
        // The answer is the same for a removed and an unknown key. The audit log distinguishes them.
        const why = operator ? 'the operator was removed' : 'the key is not known';
        await refuse(operator, 'operator_unknown', why, from.ip, operatorId);
        throw new MusterError('operator_unknown');
      }
      const now = clock.monotonic();
      const random = context.randomBytes(32);
      const nonce = bound ? boundNonces.issue(operatorId, now, random) : random;
      if (!bound) bareNonces.add(operatorId, networkOf(from.ip), nonce, now);
      return { nonce: nonce.toString('hex') };
    },

    async verify(publicKey, signature, bound = null, from = nowhere) {
      await requireBound(bound !== null, from);
      const key = operatorKey(publicKey);
      if (!/^[0-9a-fA-F]{128}$/.test(signature))
        throw new MusterError('signature_malformed', undefined, [
          { path: '/signature', message: 'must be 128 hexadecimal characters' },
        ]);
      const operatorId = await idOfKey(key);
      const bytes = Buffer.from(signature, 'hex');
      const good = bound
        ? await judgeBound(operatorId, key, bytes, bound, from)
        : judgeBare(operatorId, key, bytes, from);
      const operator = await db.get(operatorById, { operator_id: operatorId });
      if (good && operator && operator.removed_at === null)
        return issue(operator, seconds(context.now()), good.metadata.bound ? 1 : 0, [
          signedIn(operator, good.how, good.metadata),
        ]);
      const why = 'the signature does not verify, or no challenge is open for it';
      await refuse(operator, 'signature_invalid', why, from.ip, operatorId);
      throw new MusterError('signature_invalid');
    },

    find(tokenHash) {
      const cached = cache.get(tokenHash);
      if (!cached) return read(tokenHash);
      if (cached.expires_at > seconds(context.now()) && !isRefused(cached)) return cached;
      cache.delete(tokenHash);
      return null;
    },

    async renew(tokenHash) {
      const session = await read(tokenHash);
      if (!session) throw new MusterError('unauthenticated');
      if (seconds(context.now()) > session.signed_in_at + renewableSecs)
        throw new MusterError('unauthenticated', 'the sign-in is too long ago to be renewed');
      const issued = await issue(session, session.signed_in_at, session.bound, [
        statement(deleteSession, { token_hash: session.token_hash }, { expect: 'changed', else: 'unauthenticated' }),
        audited(context, {
          type: 'auth.renewed',
          actor: actorOf(session),
          summary: `${session.username} renewed the session`,
        }),
      ]);
      await ended(session.token_hash, hashOfToken(issued.token));
      return { token: issued.token, expires_at: issued.expires_at };
    },

    async logout(tokenHash) {
      const session = await read(tokenHash);
      if (!session) return;
      await db.write({
        name: 'auth/sign out',
        statements: [
          statement(deleteSession, { token_hash: session.token_hash }),
          audited(context, {
            type: 'auth.signed_out',
            actor: actorOf(session),
            summary: `${session.username} signed out`,
          }),
        ],
      });
      await ended(session.token_hash, null);
    },

    async webCode(tokenHash) {
      const session = await read(tokenHash);
      if (!session) throw new MusterError('unauthenticated');
      const code = context.randomBytes(32).toString('base64url');
      await db.write({
        name: 'auth/web code',
        statements: [
          ...inSession(context, actorIn(session)),
          statement(insertWebCode, {
            code_hash: hashOfToken(code),
            operator_id: session.operator_id,
            session_hash: session.token_hash,
            signed_in_at: session.signed_in_at,
            expires_at: Math.min(seconds(context.now()) + webCodeSecs, session.expires_at),
          }),
          audited(context, {
            type: 'auth.web_login_requested',
            actor: actorOf(session),
            summary: `${session.username} requested a code to sign in on the web`,
          }),
        ],
      });
      return code;
    },

    async redeem(code, ip = '') {
      const code_hash = hashOfToken(code);
      const row = await db.get(webCodeByHash, { code_hash });
      const operator = row && (await db.get(operatorById, { operator_id: row.operator_id }));
      const invalid = () => new MusterError('login_code_invalid');
      try {
        const asked = row && (await db.get(sessionByHash, { token_hash: row.session_hash }));
        if (!operator || !asked || isRefused(asked)) throw invalid();
        return await issue(operator, row.signed_in_at, asked.bound, [
          statement(
            consumeWebCode,
            { code_hash, now: seconds(context.now()) },
            { expect: 'changed', else: 'login_code_invalid' },
          ),
          // Signing out revokes the code.
          statement(
            liveSession,
            { session: row.session_hash, now: seconds(context.now()) },
            { expect: 'row', else: 'login_code_invalid' },
          ),
          signedIn(operator, ' on the web', { web: true }),
        ]);
      } catch (error) {
        if (!(error instanceof MusterError) || error.kind.status !== 401) throw error;
        // The answer gives no reason to a client without a valid code.
        await refuse(operator, 'login_code_invalid', 'the code of a web sign-in is not valid', ip);
        throw invalid();
      }
    },

    async endUnbound() {
      const sessions = await db.all(unboundSessions, { now: seconds(context.now()) });
      let count = 0;
      for (const { token_hash, ...operator } of sessions) {
        try {
          await db.write({
            name: 'auth/end unbound session',
            statements: [
              statement(deleteSession, { token_hash }, { expect: 'changed', else: 'unauthenticated' }),
              audited(context, {
                type: 'auth.signed_out',
                actor: systemActor,
                target: { type: 'operator', id: operator.operator_id, name: operator.username },
                summary: `a session of ${operator.username} ended: its signature names no server, and sign_in.require_bound is set`,
              }),
            ],
          });
          count++;
        } catch (error) {
          // The operator signed out meanwhile.
          if (!(error instanceof MusterError && error.code === 'unauthenticated')) throw error;
        }
        await ended(token_hash, null);
      }
      return count;
    },

    close: unsubscribe,
  };
}
