import { verify as verifySignature } from 'node:crypto';
import { idOfKey, MusterError } from '@muster/protocol';
import { signInBytes } from '@muster/protocol/sign-in';
import type { Clock } from '../../../../lib/src/clock.ts';
import { networkOf } from '../../client-network.ts';
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
import { BoundNonces, UnboundNonces } from './sign-in-nonces.ts';
import { recordSignInRefusal } from './sign-in-refusals.ts';
import { issueWebCode, redeemWebCode } from './web-codes.ts';

/** The origin of a request. */
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
  /** Reports whether the server named in a signature is this one. */
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
   * Verifies the answer to a challenge, and opens a session.
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
   * Exchanges the token of a session for a console session.
   * @throws MusterError unauthenticated; session_token_required for a console session
   */
  openConsole(tokenHash: string): Promise<ConsoleSession>;
  logout(tokenHash: string): Promise<void>;
  /** Lists an operator's live sessions, newest first. @param current the session of the request */
  list(current: Pick<Session, 'operator_id' | 'token_hash'>): Promise<ListedSession[]>;
  /**
   * Ends one of the operator's sessions.
   * @throws MusterError session_not_found
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
   * Terminates the sessions whose signatures named no server. Call this if `requireBound` is set.
   * @returns the number of terminated sessions
   */
  endUnbound(): Promise<number>;
  close(): void;
}

export function createSignIn(
  context: Context,
  refusals: Pick<Refusals, 'record'>,
  rules: SignInRules,
  clock: Pick<Clock, 'monotonic'>,
): SignIn {
  const sessions = new Sessions(context, rules);
  const signatures = new Signatures(context, refusals, rules, clock);
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type !== 'operator_removed') return;
    sessions.forgetOperator(hint.operator_id);
    signatures.forgetOperator(hint.operator_id);
  });
  return {
    challenge: (publicKey, bound = false, from = nowhere) => signatures.challenge(publicKey, bound, from),
    async verify(publicKey, signature, bound = null, from = nowhere) {
      const { operator, how, metadata } = await signatures.verify(publicKey, signature, bound, from);
      const signedInAt = seconds(context.now());
      return sessions.open({ operator, signedInAt, bound: metadata.bound ? 1 : 0, client: from }, [
        audited(context, {
          type: 'auth.signed_in',
          actor: actorOf(operator),
          summary: `${operator.username} signed in${how}`,
          metadata,
        }),
      ]);
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
    close: unsubscribe,
  };
}

interface Proved {
  readonly operator: SignedIn['operator'];
  /** The end of the event's summary, after `NAME signed in`. */
  readonly how: string;
  readonly metadata: { readonly bound: boolean; readonly server?: string };
}

/** Issues challenges, and verifies the signatures that answer them. */
class Signatures {
  readonly #context: Context;
  readonly #refusals: Pick<Refusals, 'record'>;
  readonly #rules: SignInRules;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #boundNonces: BoundNonces;
  readonly #unboundNonces = new UnboundNonces();

  constructor(
    context: Context,
    refusals: Pick<Refusals, 'record'>,
    rules: SignInRules,
    clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#context = context;
    this.#refusals = refusals;
    this.#rules = rules;
    this.#clock = clock;
    this.#boundNonces = new BoundNonces(context.randomBytes(32));
  }

  forgetOperator(operatorId: string): void {
    this.#unboundNonces.forget(operatorId);
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
    const now = this.#clock.monotonic();
    const random = this.#context.randomBytes(32);
    const nonce = bound ? this.#boundNonces.issue(operatorId, now, random) : random;
    if (!bound) this.#unboundNonces.add(operatorId, networkOf(from.ip), nonce, now);
    return { nonce: nonce.toString('hex') };
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
    const good = bound
      ? await this.#judgeBound(operatorId, key, bytes, bound, from)
      : this.#judgeUnbound(operatorId, key, bytes, from);
    const operator = await this.#context.db.get(operatorById, { operator_id: operatorId });
    if (good && operator && operator.removed_at === null) return { operator, ...good };
    const why = 'the signature is invalid, or its challenge has expired or was already answered';
    const refusal = { operator, code: 'signature_invalid', why, ip: from.ip, keyId: operatorId } as const;
    await recordSignInRefusal(this.#refusals, refusal);
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
   * Verifies a bound signature and consumes its nonce.
   * @returns the details of the sign-in event; null if the signature is invalid
   */
  async #judgeBound(operatorId: string, key: Buffer, signature: Buffer, bound: Bound, from: From) {
    const { server } = bound;
    const now = this.#clock.monotonic();
    const nonce = Buffer.from(bound.nonce, 'hex');
    const signed = signInBytes({ server, publicKey: key.toString('hex'), nonce: bound.nonce });
    const good =
      this.#boundNonces.isLive(operatorId, nonce, now) &&
      verifySignature(null, signed, publicKeyFromRaw(key), signature);
    if (!this.#rules.isOwnServer(server, from.loopback)) {
      // The signature is valid for another server, which may be relaying sign-ins.
      if (good) {
        const operator = await this.#context.db.get(operatorById, { operator_id: operatorId });
        const why = `the signature is for ${server}`;
        const refusal = { operator, code: 'sign_in_server_unknown', why, ip: from.ip, keyId: operatorId } as const;
        await recordSignInRefusal(this.#refusals, refusal);
      }
      throw new MusterError('sign_in_server_unknown', `the signature is for ${server}, which is not this orchestrator`);
    }
    if (!good) return null;
    this.#boundNonces.markAnswered(nonce, now);
    return { how: '', metadata: { bound: true, server } };
  }

  #judgeUnbound(operatorId: string, key: Buffer, signature: Buffer, { ip }: From) {
    const now = this.#clock.monotonic();
    const keyObject = publicKeyFromRaw(key);
    const answered = this.#unboundNonces
      .candidates(operatorId, networkOf(ip), now)
      .find((nonce) => verifySignature(null, nonce, keyObject, signature));
    if (answered === undefined) return null;
    this.#unboundNonces.markAnswered(operatorId, answered, now);
    return { how: ' by a signature that names no server', metadata: { bound: false } };
  }
}
