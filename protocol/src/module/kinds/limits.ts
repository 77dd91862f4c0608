import { choice, formatted } from './field.ts';
import type { Check } from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

/** Limits of limits.conf(5). */
const items = [
  ...['as', 'core', 'cpu', 'data', 'fsize', 'locks', 'maxlogins', 'maxsyslogins', 'memlock', 'msgqueue', 'nice'],
  ...['nofile', 'nonewprivs', 'nproc', 'priority', 'rss', 'rtprio', 'sigpending', 'stack'],
] as const;

const domain: Check = (text) =>
  text.length <= 64 && /^(\*|@?[A-Za-z_][A-Za-z0-9_.-]*\$?)$/.test(text)
    ? undefined
    : 'must be a user, a group such as "@staff", or "*" for everyone except root';

const value: Check = (text) =>
  text === 'unlimited' || (/^-?(0|[1-9]\d{0,18})$/.test(text) && text !== '-0')
    ? undefined
    : 'must be a whole number or "unlimited"';

export const limitsKind = {
  limits: defineKind({
    description: 'A limit of pam_limits for the processes of a user or group',
    platforms: ['linux'],
    example: 'domain: postgres\nlimit_type: soft\nitem: nofile\nvalue: "65536"',
    required: {
      domain: formatted('A user, a group such as @staff, or * for everyone except root', domain),
      limit_type: choice('The limit to set; a process may raise its soft limit to the hard limit', [
        'soft',
        'hard',
        'both',
      ]),
      item: choice('The limited resource, as in limits.conf(5)', items),
      value: formatted('A whole number in the unit of the item, or unlimited', value),
    },
    optional: { ensure },
    identifiedBy: ['domain', 'limit_type', 'item'],
    identity: (body) => joined(body.domain, '/', joined(body.limit_type, '/', body.item)),
  }),
};
