import type { Refusals } from '../audit/refusals.ts';
import { systemActor } from '../shared/context.ts';
import { actorOf } from './sessions.ts';

export interface SignInRefusal {
  /** The operator that the request claims to come from; undefined if unknown. */
  readonly operator: { readonly operator_id: string; readonly username: string } | undefined;
  readonly code:
    | 'operator_unknown'
    | 'signature_invalid'
    | 'login_code_invalid'
    | 'sign_in_unbound'
    | 'sign_in_server_unknown';
  readonly why: string;
  readonly ip: string;
  readonly keyId?: string;
}

/** Records a refused sign-in in the audit log. */
export function recordSignInRefusal(
  refusals: Pick<Refusals, 'record'>,
  { operator, code, why, ip, keyId }: SignInRefusal,
): Promise<void> {
  return refusals.record({
    type: 'auth.refused',
    who: operator ? 'claimed' : 'stranger',
    actor: operator ? actorOf(operator) : systemActor,
    summary: `sign-in refused: ${why}`,
    code,
    ip,
    ...(keyId === undefined ? {} : { metadata: { key_id: keyId } }),
    same: { of: `${operator?.operator_id ?? ''} ${why}`, anywhere: false },
  });
}
