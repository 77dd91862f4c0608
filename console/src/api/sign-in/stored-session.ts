import { roles } from '@muster/protocol/http';
import type { Credential, StoredSession } from './credential.ts';

export interface SessionStorage {
  read(): StoredSession | null;
  write(session: StoredSession): void;
  clear(): void;
  /** Calls the listener when another tab signs in (with its session) or signs out (with null). */
  subscribe(listener: (session: StoredSession | null) => void): void;
}

const key = 'muster.session';

/**
 * Stores the session's credential. Stores a page key for all tabs of the origin, because it is worthless without the
 * cookie, which scripts cannot read. Stores a token, which is used in browsers that refuse the cookie, only for this
 * tab.
 */
export const browserStorage: SessionStorage = {
  read: () => parse(storageOf('console')?.getItem(key)) ?? parse(storageOf('token')?.getItem(key)),
  write(session) {
    const { kind } = session.credential;
    storageOf(kind)?.setItem(key, JSON.stringify(session));
    storageOf(kind === 'console' ? 'token' : 'console')?.removeItem(key);
  },
  clear() {
    for (const kind of ['console', 'token'] as const) storageOf(kind)?.removeItem(key);
  },
  subscribe(listener) {
    window.addEventListener('storage', (event) => {
      // The event's key is null if the other tab cleared the whole storage.
      if (event.key === key || event.key === null) listener(parse(event.newValue));
    });
  },
};

/** Returns null if the browser blocks storage. */
function storageOf(kind: Credential['kind']): Storage | null {
  try {
    return kind === 'console' ? window.localStorage : window.sessionStorage;
  } catch {
    return null;
  }
}

/** Returns null for text that this version did not write. */
export function parse(text: string | null | undefined): StoredSession | null {
  try {
    const { person, credential } = JSON.parse(text ?? 'null') ?? {};
    const { operator_id, username, role } = person;
    const isPerson = [operator_id, username].every(isText) && roles.includes(role);
    const isCredential =
      credential.kind === 'token'
        ? isText(credential.token) && Number.isFinite(credential.expires_at)
        : credential.kind === 'console' && isText(credential.page_key);
    return isPerson && isCredential ? { person: { operator_id, username, role }, credential } : null;
  } catch {
    return null;
  }
}

const isText = (value: unknown): value is string => typeof value === 'string';
