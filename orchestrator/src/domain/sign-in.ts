import { createHash, verify as verifySignature } from 'node:crypto';
import { idOfKey, MusterError } from '@muster/protocol';
import type { Role } from '@muster/protocol/http';
import { publicKeyFromRaw } from '../identity/ed25519-key.ts';
import { deleteSession, insertSession, liveOperator, operatorById, sessionByHash } from '../store/operators.ts';
import { statement } from '../store/unit.ts';
import { audited } from './audit.ts';
import { type Actor, type Context, seconds, systemActor } from './context.ts';
import { operatorKey } from './operators.ts';

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
/** Sessions kept in memory; the rest is read from the database. */
const cachedSessions = 10_000;

export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export interface SignIn {
  /** @throws MusterError key_invalid, operator_unknown */
  challenge(publicKey: string): Promise<{ nonce: string }>;
  /** @throws MusterError key_invalid, signature_malformed, signature_invalid */
  verify(publicKey: string, signature: string): Promise<{ token: string; expires_at: number }>;
  /** The live session under the SHA-256 (hex) of a token, or null. */
  find(tokenHash: string): Session | null | Promise<Session | null>;
  /** @throws MusterError unauthenticated, when the signature was given too long ago */
  renew(tokenHash: string): Promise<{ token: string; expires_at: number }>;
  logout(tokenHash: string): Promise<void>;
  close(): void;
}

/** @param tokenLifeSecs how long a token is good */
export function createSignIn(context: Context, tokenLifeSecs: number): SignIn {
  const { db } = context;
  /** Live nonces by operator id, oldest first. Only active operators get one, so the map cannot be filled from outside. */
  const nonces = new Map<string, { nonce: Buffer; until: number }[]>();
  const cache = new Map<string, Session>();
  /** Counts removals: what was read before one is not remembered after it. */
  let removals = 0;

  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type !== 'operator_removed') return;
    removals++;
    nonces.delete(hint.operator_id);
    for (const [hash, session] of cache) if (session.operator_id === hint.operator_id) cache.delete(hash);
  });

  const remember = (session: Session) => {
    if (cache.size >= cachedSessions) cache.delete(cache.keys().next().value as string);
    cache.set(session.token_hash, session);
  };

  const refuse = async (operator: { operator_id: string; username: string } | undefined, why: string) => {
    await db.write({
      name: 'auth/refuse',
      statements: [
        audited(context, {
          type: 'auth.refused',
          severity: 'warning',
          actor: operator ? { type: 'operator', id: operator.operator_id, name: operator.username } : systemActor,
          summary: `sign-in refused: ${why}`,
        }),
      ],
    });
  };

  const issue = async (
    operator: { operator_id: string; username: string; role: Role },
    signedInAt: number,
    replaces: Session | null,
  ) => {
    const token = context.randomBytes(32).toString('base64url');
    const now = seconds(context.now());
    const session: Session = {
      token_hash: hashOfToken(token),
      operator_id: operator.operator_id,
      username: operator.username,
      role: operator.role,
      signed_in_at: signedInAt,
      expires_at: Math.min(now + tokenLifeSecs, signedInAt + renewableSecs + tokenLifeSecs),
    };
    const { username: _, role: __, ...row } = session;
    await db.write({
      name: replaces ? 'auth/renew' : 'auth/sign in',
      statements: [
        // In the same unit: whoever is removed in this moment gets no session.
        statement(liveOperator, { operator_id: operator.operator_id }, { expect: 'row', else: 'unauthenticated' }),
        statement(insertSession, { ...row, created_at: now }),
        ...(replaces
          ? [
              statement(
                deleteSession,
                { token_hash: replaces.token_hash },
                { expect: 'changed', else: 'unauthenticated' },
              ),
              audited(context, {
                type: 'auth.renewed',
                actor: { type: 'operator', id: operator.operator_id, name: operator.username },
                summary: `${operator.username} renewed the session`,
              }),
            ]
          : [
              audited(context, {
                type: 'auth.signed_in',
                actor: { type: 'operator', id: operator.operator_id, name: operator.username },
                summary: `${operator.username} signed in`,
              }),
            ]),
      ],
    });
    if (replaces) cache.delete(replaces.token_hash);
    return { token, expires_at: session.expires_at };
  };

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
    async challenge(publicKey) {
      const operatorId = await idOfKey(operatorKey(publicKey));
      const operator = await db.get(operatorById, { operator_id: operatorId });
      if (!operator || operator.removed_at !== null) {
        // To whoever asks, a removed key and one that was never known must read alike; the audit log tells them apart.
        await refuse(operator, operator ? 'the operator was removed' : 'the key is not known');
        throw new MusterError('operator_unknown');
      }
      const nonce = context.randomBytes(32);
      const now = context.now();
      const live = (nonces.get(operatorId) ?? []).filter(({ until }) => until > now).slice(-(noncesPerKey - 1));
      live.push({ nonce, until: now + nonceLifeMs });
      nonces.set(operatorId, live);
      return { nonce: nonce.toString('hex') };
    },

    async verify(publicKey, signature) {
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
        if (operator && operator.removed_at === null) return issue(operator, seconds(now), null);
      }
      await refuse(
        await db.get(operatorById, { operator_id: operatorId }),
        live.length === 0 ? 'no challenge is open for the key' : 'the signature does not verify',
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
      return issue(session, session.signed_in_at, session);
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
      cache.delete(session.token_hash);
    },

    close: unsubscribe,
  };
}
