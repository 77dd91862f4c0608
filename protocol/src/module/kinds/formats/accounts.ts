import { allOf, byPattern, type Check, maxLength, notEmpty, oneLine } from './text.ts';

export const unixAccount: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}\$?$/,
  'must be a name of letters, digits, "_", ".", "@" and "-", not starting with "-"',
);

/** A crypt(5) hash that specifies its method, or a character that no password matches. */
export const passwordHash: Check = byPattern(
  /^(\$[a-z0-9]{1,8}\$[^\s:!*\\\x00-\x1f\x7f]{8,400}|[!*])$/,
  'must be a hash of the password, such as "$y$…" from mkpasswd, or "!" for no password; a plain password is refused',
);

/** A field in /etc/passwd. */
export const accountComment: Check = allOf(
  oneLine,
  maxLength(512),
  byPattern(/^[^:\x00-\x1f\x7f]*$/, 'must not contain ":" or control characters'),
);

export const expiryDay: Check = (text) => {
  const fault = 'must be a day, such as "2030-01-31", or "never"';
  if (text === 'never') return undefined;
  if (!/^(19[7-9]|2\d\d)\d-\d\d-\d\d$/.test(text)) return fault;
  // `Date` converts a day that does not exist, such as June 31, to a day in the next month.
  const day = new Date(`${text}T00:00:00Z`);
  return Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text ? fault : undefined;
};

export const windowsAccount: Check = allOf(
  notEmpty,
  maxLength(256),
  byPattern(
    /^[^\x00-\x1f"/[\]:;|=,+*?<>]+$/,
    'must not contain control characters or any of " / [ ] : ; | = , + * ? < >',
  ),
);
