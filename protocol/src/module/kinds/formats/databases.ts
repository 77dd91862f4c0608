import { allOf, byPattern, type Check, maxLength, notEmpty } from './text.ts';

/** PostgreSQL truncates longer names without an error. */
const longestPostgresqlName = 63;

export const postgresqlName: Check = allOf(
  notEmpty,
  byPattern(/^[^\x00-\x1f\x7f]*$/, 'must not contain control characters'),
  (text) =>
    new TextEncoder().encode(text).length > longestPostgresqlName
      ? `is longer than ${longestPostgresqlName} bytes`
      : undefined,
);

export const postgresqlRole: Check = allOf(postgresqlName, (text) =>
  text === 'none' ? 'must not be none, which PostgreSQL reserves' : undefined,
);

export const postgresqlEncoding: Check = byPattern(
  /^[A-Z][A-Z0-9_]{0,31}$/,
  'must be the name of an encoding in upper case, such as UTF8 or LATIN1',
);

export const postgresqlLocale: Check = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$/,
  'must be a locale of the system, such as C.UTF-8 or en_US.UTF-8',
);

/** MariaDB allows 64 characters, and no backslash that the client could read as a command. */
export const mysqlName: Check = allOf(
  notEmpty,
  maxLength(64),
  byPattern(
    /^[^\x00-\x1f\x7f/\\.]*[^\x00-\x1f\x7f/\\. ]$/,
    'must not contain "/", "\\", ".", or control characters, or end with a space',
  ),
);

export const mysqlUser: Check = allOf(
  notEmpty,
  maxLength(80),
  byPattern(/^[^\x00-\x1f\x7f\\'"`@]*$/, 'must not contain quotes, "\\", "@", or control characters'),
);

/** Anonymous users have an empty name. */
export const mysqlUserOrAnonymous: Check = (name) => (name === '' ? undefined : mysqlUser(name));

export const mysqlHost: Check = byPattern(
  /^[a-z0-9_.:%/-]{1,255}$/,
  'must be a host name in lower case, an address, or a pattern with "%", such as 192.0.2.%',
);

export const mysqlPasswordHash: Check = byPattern(
  /^\*[0-9A-Fa-f]{40}$/,
  'must be "*" and 40 hexadecimal digits, as SELECT PASSWORD() returns',
);

export const mysqlCharacterSet: Check = byPattern(
  /^[a-z][a-z0-9_]{0,63}$/,
  'must be the name of a character set or a collation, such as utf8mb4',
);
