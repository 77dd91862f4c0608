import { verify as verifySignature } from 'node:crypto';
import { idOfKey, MusterError } from '@muster/protocol';
import { signInBytes } from '@muster/protocol/sign-in';
import { publicKeyFromRaw } from '../../identity/ed25519-key.ts';
import { operatorById } from '../../store/queries/operators.ts';
import { audited } from '../audit/audit.ts';
import type { Refusals } from '../audit/refusals.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { operatorKey } from './operators.ts';
import {
  actorOf,
  type ConsoleSession,
  type ListedSession,
  type Session,
  type SessionClient,
  type SessionRules,
  Sessions,
  type SignedIn,
} from './sessions.ts';
import { type LiveNonce, SignInChallenges } from './sign-in-challenges.ts';
import { recordSignInRefusal } from './sign-in-refusals.ts';
import { issueWebCode, redeemWebCode } from './web-codes.ts';

/** The client that sent a request. */
export interface From extends SessionClient {
  /** Whether the client is on this machine. */
  readonly loopback: boolean;
}
const nowhere: From = { ip: '', loopback: false };

/** The data that a bound signature covers besides the key. */
export interface Bound {
  readonly server: string;
  /** 64 lower-case hexadecimal characters. */
  readonly nonce: string;
}

export interface SignInRules extends SessionRules {
  /** Reports whether the server named in a signature is this server. */
  isOwnServer(server: string, loopback: boolean): boolean;
}

export interface SignIn {
  /**
   * Issues a challenge.
   * @param bound whether the signature will name the server
   * @throws MusterError key_invalid, operator_unknown, sign_in_unbound
   */
  challenge(publicKey: string, bound?: boolean, from?: From): Promise<{ nonce: string }>;
  /**
   * Verifies the response to a challenge, and opens a session.
   * @param bound null if the signature covers only the nonce
   * @throws MusterError key_invalid, signature_malformed, signature_invalid, sign_in_unbound, sign_in_server_unknown
   */
  verify(publicKey: string, signature: string, bound?: Bound | null, from?: From): Promise<SignedIn>;
  /** Returns a token's live session, by its SHA-256 (hex), or null. */
  find(tokenHash: string): Session | null | Promise<Session | null>;
  /**
   * Renews a session.
   * @throws MusterError unauthenticated if the operator signed in too long ago; session_token_required for a console session
   */
  renew(tokenHash: string): Promise<{ token: string; expires_at: number }>;
  /**
   * Exchanges a session's token for a console session.
   * @throws MusterError unauthenticated; session_token_required for a console session
   */
  openConsole(tokenHash: string): Promise<ConsoleSession>;
  logout(tokenHash: string): Promise<void>;
  /** Lists an operator's live sessions, newest first. @param current the session of the request */
  list(current: Pick<Session, 'operator_id' | 'token_hash'>): Promise<ListedSession[]>;
  /**
   * Ends one of the operator's sessions.
   * @throws MusterError session_not_found, unauthenticated
   */
  end(actor: Actor, id: string): Promise<void>;
  /** Ends all of the operator's sessions. @returns the number of ended sessions */
  endAll(actor: Actor): Promise<number>;
  /**
   * Issues a single-use code that a browser exchanges for its own session.
   * @throws MusterError unauthenticated; session_token_required for a console session
   */
  webCode(tokenHash: string): Promise<string>;
  /**
   * Exchanges a code for a session.
   * @throws MusterError login_code_invalid
   */
  redeem(code: string, client?: SessionClient): Promise<SignedIn>;
  /**
   * Ends the sessions whose signatures named no server. Call this if `requireBound` is set.
   * @returns the number of ended sessions
   */
  endUnbound(): Promise<number>;
  /**
   * Announces the sign-in sessions in use that another replica has ended or renewed.
   * @param tokenHashes token hashes of the sign-in sessions that opened terminals
   */
  recheck(tokenHashes: readonly string[]): Promise<void>;
  close(): void;
}

/** @param challengeKey 32 secret bytes that all processes on the database share */
export function createSignIn(
  context: Context,
  refusals: Pick<Refusals, 'record'>,
  rules: SignInRules,
  challengeKey: Buffer,
): SignIn {
  const sessions = new Sessions(context, rules);
  const challenges = new SignInChallenges(context, challengeKey);
  const signatures = new Signatures(context, refusals, rules, challenges);
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'operator_removed') sessions.cache.forgetOperator(hint.operator_id);
    else if (hint.type === 'session_ended') sessions.cache.forget(hint.token_hash);
  });
  return {
    challenge: (publicKey, bound = false, from = nowhere) => signatures.challenge(publicKey, bound, from),
    async verify(publicKey, signature, bound = null, from = nowhere) {
      const { operator, nonce, how, metadata } = await signatures.verify(publicKey, signature, bound, from);
      const signedInAt = seconds(context.now());
      const session = { operator, signedInAt, bound: metadata.bound ? 1 : 0, client: from };
      try {
        return await sessions.open(session, [
          ...challenges.answered(operator.operator_id, nonce),
          audited(context, {
            type: 'auth.signed_in',
            actor: actorOf(operator),
            summary: `${operator.username} signed in${how}`,
            metadata,
          }),
        ]);
      } catch (error) {
        if (!(error instanceof MusterError) || error.code !== 'signature_invalid') throw error;
        return await signatures.refuse(operator, operator.operator_id, from);
      }
    },
    find: (tokenHash) => sessions.find(tokenHash),
    renew: (tokenHash) => sessions.renew(tokenHash),
    openConsole: (tokenHash) => sessions.openConsole(tokenHash),
    logout: (tokenHash) => sessions.logout(tokenHash),
    list: (current) => sessions.list(current),
    end: (actor, id) => sessions.end(actor, id),
    endAll: (actor) => sessions.endAll(actor),
    webCode: (tokenHash) => issueWebCode(context, sessions, tokenHash),
    redeem: (code, client = nowhere) => redeemWebCode(context, sessions, refusals, code, client),
    endUnbound: () => sessions.endUnbound(),
    recheck: (tokenHashes) => sessions.cache.recheck(tokenHashes),
    close: unsubscribe,
  };
}

interface Proved {
  readonly operator: SignedIn['operator'];
  /** The nonce that was signed. An earlier response may have used it already. */
  readonly nonce: LiveNonce;
  /** The end of the event's summary, after `NAME signed in`. */
  readonly how: string;
  readonly metadata: { readonly bound: boolean; readonly server?: string };
}

/** Issues challenges, and verifies the signatures in the responses. */
class Signatures {
  readonly #context: Context;
  readonly #refusals: Pick<Refusals, 'record'>;
  readonly #rules: SignInRules;
  readonly #challenges: SignInChallenges;

  constructor(context: Context, refusals: Pick<Refusals, 'record'>, rules: SignInRules, challenges: SignInChallenges) {
    this.#context = context;
    this.#refusals = refusals;
    this.#rules = rules;
    this.#challenges = challenges;
  }

  async challenge(publicKey: string, bound: boolean, from: From): Promise<{ nonce: string }> {
    await this.#requireBound(bound, from);
    const operatorId = await idOfKey(operatorKey(publicKey));
    const operator = await this.#context.db.get(operatorById, { operator_id: operatorId });
    if (!operator || operator.removed_at !== null) {
      // Returns the same response for a removed operator as for an unknown key. Only the audit log distinguishes them.
      const why = operator ? 'the operator was removed' : 'the key is unknown';
      const refusal = { operator, code: 'operator_unknown', why, ip: from.ip, keyId: operatorId } as const;
      await recordSignInRefusal(this.#refusals, refusal);
      throw new MusterError('operator_unknown');
    }
    return { nonce: (await this.#challenges.issue(operatorId, bound)).toString('hex') };
  }

  async verify(publicKey: string, signature: string, bound: Bound | null, from: From): Promise<Proved> {
    await this.#requireBound(bound !== null, from);
    const key = operatorKey(publicKey);
    if (!/^[0-9a-fA-F]{128}$/.test(signature))
      throw new MusterError('signature_malformed', undefined, [
        { path: '/signature', message: 'must be 128 hexadecimal characters' },
      ]);
    const operatorId = await idOfKey(key);
    const bytes = Buffer.from(signature, 'hex');
    const operator = await this.#context.db.get(operatorById, { operator_id: operatorId });
    const good = bound
      ? await this.#judgeBound(operator, operatorId, key, bytes, bound, from)
      : operator && (await this.#judgeUnbound(operatorId, key, bytes));
    if (good && operator && operator.removed_at === null) return { operator, ...good };
    return await this.refuse(operator, operatorId, from);
  }

  /** Records a refused response. @throws MusterError signature_invalid */
  async refuse(operator: SignedIn['operator'] | undefined, keyId: string, { ip }: From): Promise<never> {
    const why = 'the signature is invalid, or its challenge has expired or was already answered';
    await recordSignInRefusal(this.#refusals, { operator, code: 'signature_invalid', why, ip, keyId });
    throw new MusterError('signature_invalid');
  }

  async #requireBound(bound: boolean, { ip }: From): Promise<void> {
    if (bound || !this.#rules.requireBound) return;
    // Must precede the key lookup, so that known and unknown keys get the same response.
    const why = 'the request is for a signature that does not name this server';
    await recordSignInRefusal(this.#refusals, { operator: undefined, code: 'sign_in_unbound', why, ip });
    throw new MusterError('sign_in_unbound');
  }

  /**
   * Verifies a bound signature.
   * @returns the nonce and the details of the sign-in event; null if the signature is invalid
   */
  async #judgeBound(
    operator: SignedIn['operator'] | undefined,
    operatorId: string,
    key: Buffer,
    signature: Buffer,
    bound: Bound,
    from: From,
  ) {
    const { server } = bound;
    const signed = signInBytes({ server, publicKey: key.toString('hex'), nonce: bound.nonce });
    const live = await this.#challenges.readBound(operatorId, Buffer.from(bound.nonce, 'hex'));
    const nonce = live !== null && verifySignature(null, signed, publicKeyFromRaw(key), signature) ? live : null;
    if (!this.#rules.isOwnServer(server, from.loopback)) {
      // The signature is valid for another server, which may be relaying sign-ins.
      if (nonce !== null) {
        const why = `the signature is for ${server}`;
        const refusal = { operator, code: 'sign_in_server_unknown', why, ip: from.ip, keyId: operatorId } as const;
        await recordSignInRefusal(this.#refusals, refusal);
      }
      throw new MusterError('sign_in_server_unknown', `the signature is for ${server}, which is not this orchestrator`);
    }
    return nonce && { nonce, how: '', metadata: { bound: true, server } };
  }

  async #judgeUnbound(operatorId: string, key: Buffer, signature: Buffer) {
    const keyObject = publicKeyFromRaw(key);
    const candidates = await this.#challenges.unbound(operatorId);
    for (const nonce of candidates)
      if (verifySignature(null, nonce.bytes, keyObject, signature))
        return { nonce, how: ' by a signature that names no server', metadata: { bound: false } };
    return null;
  }
}
