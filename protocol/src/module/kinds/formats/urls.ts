import { unixFile } from './paths.ts';
import type { Check } from './text.ts';

/** An http or https URL, without a fragment, because servers do not receive fragments. */
export const httpUrl: Check = (text) => {
  const url = text.length <= 2000 && /^https?:\/\/[^\s\x00-\x1f\x7f]+$/.test(text) ? URL.parse(text) : null;
  if (url === null)
    return 'must be an http or https URL with up to 2000 characters, such as https://example.org/app.tar.gz';
  return text.includes('#') ? 'must not contain "#"' : undefined;
};

export const httpsUrl: Check = (text) =>
  httpUrl(text) ??
  (text.startsWith('https://')
    ? undefined
    : 'must begin with https://, because only TLS protects it from being changed in transit');

/**
 * A URL for git whose protocol authenticates the server. It must not contain a password, because other users could
 * see it.
 */
export const gitUrl: Check = (text) => {
  const fault =
    'must be https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or an absolute path: other protocols do not authenticate the server';
  if (text.length > 2000 || /[\s\x00-\x1f\x7f]/.test(text)) return fault;
  if (text.startsWith('/')) return unixFile(text);
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?!\/\/)[^-].*$/.test(text)) return undefined;
  const url = /^(https|ssh):\/\/[^-/]/.test(text) ? URL.parse(text) : null;
  if (url === null) return fault;
  return url.password === '' ? undefined : 'must not contain a password: use `key`, or a credential helper of git';
};

export const gitRevision: Check = (text) =>
  /^[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,249}$/.test(text) && !/\.\.|\/\/|@\{|\.lock(\/|$)|[./]$/.test(text)
    ? undefined
    : 'must be the name of a tag or a branch, or the 40 digits of a commit';
