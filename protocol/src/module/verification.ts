import { formatted, integer, line, text } from './kinds/field.ts';
import * as format from './kinds/format.ts';
import type { Kind } from './kinds/kind.ts';
import { defineKind } from './kinds/kind.ts';

/** Default time limit of a check, in seconds. */
export const defaultTimeout = 10;
const timeout = integer(`Time limit in seconds; default: ${defaultTimeout}`, 1, 300);

/** Kinds of checks after an apply. Modules write `command` as a plain string. */
export const verificationKinds = {
  http: defineKind({
    description: 'An HTTP request that must return the expected status',
    platforms: ['linux', 'macos', 'windows'],
    required: {
      url: text('Address of the request', (url) =>
        /^https?:\/\/[^\s]+$/.test(url) ? undefined : 'must be an address that starts with http:// or https://',
      ),
    },
    identifiedBy: [],
    optional: { status: integer('Expected status; default: 200', 100, 599), timeout },
  }),
  tcp: defineKind({
    description: 'A TCP port that must accept connections',
    platforms: ['linux', 'macos', 'windows'],
    required: { port: integer('Port', 1, 65_535) },
    identifiedBy: [],
    optional: { host: formatted('Host; default: this machine', format.aptSourceWord), timeout },
  }),
  command: defineKind({
    description: 'A command that must exit with code 0',
    platforms: ['linux', 'macos', 'windows'],
    required: { command: line('Command line') },
    optional: {},
    identifiedBy: [],
  }),
};

export type VerificationType = keyof typeof verificationKinds;

export const verificationKind = (type: VerificationType): Kind => verificationKinds[type];
