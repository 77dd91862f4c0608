import { createHash, verify as verifySignature } from 'node:crypto';
import { idOfKey, MusterError } from '@muster/protocol';
import type { Role } from '@muster/protocol/http';
import { publicKeyFromRaw } from '../identity/ed25519-key.ts';
import {
  consumeWebCode,
  deleteSession,
  insertSession,
  insertWebCode,
  liveOperator,
  liveSession,
  operatorById,
  sessionByHash,
  webCodeByHash,
} from '../store/operators.ts';
import { type Statement, statement } from '../store/unit.ts';
import { audited } from './audit.ts';
import { type Actor, type Context, seconds, systemActor } from './context.ts';
import { operatorKey } from './operators.ts';
import type { Refusals } from './refusals.ts';

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

const nonceLifeMs = 60_000;
const noncesPerKey = 8;
/** Sessions may be renewed until so long after the signature. */
const renewableSecs = 12 * 3600;
/** A code for a browser is good for so long. */
const webCodeSecs = 60;
/** Sessions kept in memory; the rest is read from the database. */
const cachedSessions = 10_000;

export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/** A session as it begins. */
export interface SignedIn {
  readonly token: string;
  readonly expires_at: number;
  readonly operator: Pick<Session, 'operator_id' | 'username' | 'role'>;
}

/** `ip`: where a request came from, for the audit log when it is refused. */
export interface SignIn {
  /** @throws MusterError key_invalid, operator_unknown */
  challenge(publicKey: string, ip?: string): Promise<{ nonce: string }>;
  /** @throws MusterError key_invalid, signature_malformed, signature_invalid */
  verify(publicKey: string, signature: string, ip?: string): Promise<SignedIn>;
  /** The live session under the SHA-256 (hex) of a token, or null. */
  find(tokenHash: string): Session | null | Promise<Session | null>;
  /** @throws MusterError unauthenticated, when the signature was given too long ago */
  renew(tokenHash: string): Promise<{ token: string; expires_at: number }>;
  logout(tokenHash: string): Promise<void>;
  /** A code, good once, that a browser changes for a session of its own. @throws MusterError unauthenticated */
  webCode(tokenHash: string): Promise<string>;
  /** @throws MusterError login_code_invalid */
  redeem(code: string, ip?: string): Promise<SignedIn>;
  close(): void;
}

/** @param tokenLifeSecs how long a token is good */
export function createSignIn(context: Context, refusals: Pick<Refusals, 'record'>, tokenLifeSecs: number): SignIn {
  const { db } = context;
  /** Live nonces by operator id, oldest first. Only active operators get one, so the map cannot be filled from outside. */
  const nonces = new Map<string, { nonce: Buffer; until: number }[]>();
  const cache = new Map<string, Session>();
  /** Counts ends of sessions: what was read before one is not remembered after it. */
  let removals = 0;

  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type !== 'operator_removed') return;
    removals++;
    nonces.delete(hint.operator_id);
    for (const [hash, session] of cache) if (session.operator_id === hint.operator_id) cache.delete(hash);
  });

  const ended = (tokenHash: string, renewedAs: string | null) => {
    removals++;
    cache.delete(tokenHash);
    context.bus.publish({ type: 'session_ended', token_hash: tokenHash, renewed_as: renewedAs });
  };

  const remember = (session: Session) => {
    if (cache.size >= cachedSessions) cache.delete(cache.keys().next().value as string);
    cache.set(session.token_hash, session);
  };

  const refuse = (
    operator: { operator_id: string; username: string } | undefined,
    code: 'operator_unknown' | 'signature_invalid' | 'login_code_invalid',
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

  /** @param ways what must hold besides, and the event that says how the session came about */
  const issue = async (
    { operator_id, username, role }: SignedIn['operator'],
    signedInAt: number,
    ways: readonly Statement[],
  ): Promise<SignedIn> => {
    const token = context.randomBytes(32).toString('base64url');
    const now = seconds(context.now());
    const session = {
      token_hash: hashOfToken(token),
      operator_id,
      signed_in_at: signedInAt,
      expires_at: Math.min(now + tokenLifeSecs, signedInAt + renewableSecs + tokenLifeSecs),
    };
    await db.write({
      name: 'auth/issue session',
      statements: [
        // In the same unit: whoever is removed in this moment gets no session.
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

  /** Not from memory: a removal on the way is seen. */
  const read = async (tokenHash: string): Promise<Session | null> => {
    const seen = removals;
    const row = await db.get(sessionByHash, { token_hash: tokenHash });
    if (!row || row.removed_at !== null || row.expires_at <= seconds(context.now())) return null;
    const { removed_at: _, ...session } = row;
    if (seen === removals) remember(session);
    return session;
  };

  return {
    async challenge(publicKey, ip = '') {
      const operatorId = await idOfKey(operatorKey(publicKey));
      const operator = await db.get(operatorById, { operator_id: operatorId });
      if (!operator || operator.removed_at !== null) {
        // To whoever asks, a removed key and one that was never known must read alike; the audit log tells them apart.
        const why = operator ? 'the operator was removed' : 'the key is not known';
        await refuse(operator, 'operator_unknown', why, ip, operatorId);
        throw new MusterError('operator_unknown');
      }
      const nonce = context.randomBytes(32);
      const now = context.now();
      const live = (nonces.get(operatorId) ?? []).filter(({ until }) => until > now).slice(-(noncesPerKey - 1));
      live.push({ nonce, until: now + nonceLifeMs });
      nonces.set(operatorId, live);
      return { nonce: nonce.toString('hex') };
    },

    async verify(publicKey, signature, ip = '') {
      const key = operatorKey(publicKey);
      if (!/^[0-9a-fA-F]{128}$/.test(signature))
        throw new MusterError('signature_malformed', undefined, [
          { path: '/signature', message: 'must be 128 hexadecimal characters' },
        ]);
      const operatorId = await idOfKey(key);
      const now = context.now();
      const live = (nonces.get(operatorId) ?? []).filter(({ until }) => until > now);
      const keyObject = publicKeyFromRaw(key);
      const bytes = Buffer.from(signature, 'hex');
      const answered = live.find(({ nonce }) => verifySignature(null, nonce, keyObject, bytes));
      if (answered) {
        nonces.set(
          operatorId,
          live.filter((entry) => entry !== answered),
        );
        const operator = await db.get(operatorById, { operator_id: operatorId });
        if (operator && operator.removed_at === null) return issue(operator, seconds(now), [signedIn(operator, '')]);
      }
      await refuse(
        await db.get(operatorById, { operator_id: operatorId }),
        'signature_invalid',
        live.length === 0 ? 'no challenge is open for the key' : 'the signature does not verify',
        ip,
        operatorId,
      );
      throw new MusterError('signature_invalid');
    },

    find(tokenHash) {
      const cached = cache.get(tokenHash);
      if (!cached) return read(tokenHash);
      if (cached.expires_at > seconds(context.now())) return cached;
      cache.delete(tokenHash);
      return null;
    },

    async renew(tokenHash) {
      const session = await read(tokenHash);
      if (!session) throw new MusterError('unauthenticated');
      if (seconds(context.now()) > session.signed_in_at + renewableSecs)
        throw new MusterError('unauthenticated', 'the sign-in is too long ago to be renewed');
      const issued = await issue(session, session.signed_in_at, [
        statement(deleteSession, { token_hash: session.token_hash }, { expect: 'changed', else: 'unauthenticated' }),
        audited(context, {
          type: 'auth.renewed',
          actor: actorOf(session),
          summary: `${session.username} renewed the session`,
        }),
      ]);
      ended(session.token_hash, hashOfToken(issued.token));
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
      ended(session.token_hash, null);
    },

    async webCode(tokenHash) {
      const session = await read(tokenHash);
      if (!session) throw new MusterError('unauthenticated');
      const code = context.randomBytes(32).toString('base64url');
      await db.write({
        name: 'auth/web code',
        statements: [
          statement(liveSession, { token_hash: session.token_hash }, { expect: 'row', else: 'unauthenticated' }),
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
            summary: `${session.username} asked for a code to sign in on the web`,
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
        if (!row || !operator) throw invalid();
        return await issue(operator, row.signed_in_at, [
          statement(
            consumeWebCode,
            { code_hash, now: seconds(context.now()) },
            { expect: 'changed', else: 'login_code_invalid' },
          ),
          // Who has signed out since has called the code back.
          statement(liveSession, { token_hash: row.session_hash }, { expect: 'row', else: 'login_code_invalid' }),
          signedIn(operator, ' on the web', { web: true }),
        ]);
      } catch (error) {
        if (!(error instanceof MusterError) || error.kind.status !== 401) throw error;
        // Why is nobody's business who has no good code.
        await refuse(operator, 'login_code_invalid', 'the code of a web sign-in is not good (any more)', ip);
        throw invalid();
      }
    },

    close: unsubscribe,
  };
}
