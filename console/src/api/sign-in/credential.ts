import { type Operator, pageKeyHeader } from '@muster/protocol/http';
import type { Token } from './token-renewal.ts';

export type Person = Pick<Operator, 'operator_id' | 'username' | 'role'>;

/** The credential of a request: a token, or the page key for the cookie of the browser's console session. */
export type Credential = ({ readonly kind: 'token' } & Token) | { readonly kind: 'console'; readonly page_key: string };

/** The sign-in session that a page resumes after a reload, and that other tabs in the browser use. */
export interface StoredSession {
  readonly person: Person;
  readonly credential: Credential;
}

export const headersOf = (credential: Credential): Record<string, string> =>
  credential.kind === 'token'
    ? { authorization: `Bearer ${credential.token}` }
    : { [pageKeyHeader]: credential.page_key };

export const isSameCredential = (one: Credential, other: Credential): boolean => secretOf(one) === secretOf(other);

/** Returns the secret part of a credential. Secrets are random, so a token never equals a page key. */
export const secretOf = (credential: Credential): string =>
  credential.kind === 'token' ? credential.token : credential.page_key;
