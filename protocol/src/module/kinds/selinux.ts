import { boolean, choice, formatted, list } from './field.ts';
import { allOf, byPattern, type Check, maxLength, oneLine, unixDirectory, withoutClosingSlash } from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

const booleanName = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}$/,
  'must be the name of an SELinux boolean, such as httpd_can_network_connect',
);

const typePattern = '[A-Za-z_][A-Za-z0-9_.]{0,254}';
const typeName = byPattern(new RegExp(`^${typePattern}$`), 'must be the name of an SELinux type, such as http_port_t');
const fileTypeName = byPattern(
  new RegExp(`^(${typePattern}|<<none>>)$`),
  'must be the name of an SELinux type, such as httpd_sys_content_t, or <<none>>',
);
const userName = byPattern(/^[A-Za-z_][A-Za-z0-9_.-]{0,254}$/, 'must be the name of an SELinux user, such as system_u');

const level = 's\\d{1,4}(:c\\d{1,4}([.,]c\\d{1,4}){0,99})?';
/** Translated ranges, such as SystemLow, have several spellings, so only the form that the policy stores is valid. */
const range = byPattern(new RegExp(`^${level}(-${level})?$`), 'must be an MLS range, such as s0 or s0-s0:c0.c1023');

/** Ranges are written as in the policy, so that each has one spelling. */
const port: Check = (text) => {
  const [, low = '', high = low] = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const isRange = text.includes('-');
  return low !== '' && Number(high) <= 65_535 && (isRange ? Number(low) < Number(high) : true)
    ? undefined
    : 'must be a port from 1 to 65535, or a range such as "8000-8010"';
};

/** semanage refuses specifications with spaces. */
const target: Check = allOf(
  maxLength(1000),
  byPattern(
    /^\/[^\s\x00-\x1f\x7f]*$/,
    'must be a regular expression for absolute paths without spaces, such as /srv/web(/.*)?',
  ),
);

const restoredPath: Check = allOf(unixDirectory, oneLine, maxLength(1000), (path) =>
  path === '/' || /^\/(proc|sys|dev)(\/|$)/.test(withoutClosingSlash(path))
    ? 'must not be /, or a path in /proc, /sys, or /dev'
    : /[*?[\]{}~\\]/.test(path)
      ? 'must not contain * ? [ ] { } ~ or \\, which restorecon interprets as a pattern'
      : undefined,
);

export const selinuxKinds = {
  'selinux-mode': defineKind({
    description: 'The SELinux mode, now and at the next boot, and the SELinux policy',
    platforms: ['linux'],
    example: 'mode: enforcing\npolicy: targeted',
    required: {
      mode: choice('Mode; turning SELinux on or off takes effect at the next boot', [
        'enforcing',
        'permissive',
        'disabled',
      ]),
    },
    optional: {
      policy: formatted(
        'Name of the installed policy to load at the next boot; default: the policy that the machine has',
        byPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be the name of a policy, such as targeted'),
      ),
    },
    // A machine has one mode, so two different modes must conflict.
    identifiedBy: ['mode'],
    identity: () => 'selinux-mode',
  }),
  'selinux-boolean': defineKind({
    description: 'A boolean of the SELinux policy: its running value, and its value at the next boot',
    platforms: ['linux'],
    example: 'name: httpd_can_network_connect\nvalue: true',
    required: { name: formatted('Name of the boolean', booleanName) },
    optional: { value: boolean('Value of the boolean'), ensure },
    presentNeeds: ['value'],
  }),
  'selinux-port': defineKind({
    description: 'The SELinux type of a port or a range of ports',
    platforms: ['linux'],
    example: 'port: "8888"\nprotocol: tcp\ntype: http_port_t\nrange: s0',
    required: {
      port: formatted('Port or range, such as "8888" or "8000-8010"', port),
      protocol: choice('Protocol', ['tcp', 'udp', 'sctp', 'dccp']),
    },
    optional: {
      type: formatted('Type of the port', typeName),
      range: formatted('MLS range; default in a new record: s0', range),
      ensure,
    },
    identifiedBy: ['port', 'protocol'],
    identity: (body) => joined(body.protocol, '/', body.port),
    presentNeeds: ['type'],
  }),
  'selinux-context': defineKind({
    description: 'The SELinux context of files whose paths match a pattern',
    platforms: ['linux'],
    example:
      'target: "/srv/web(/.*)?"\nfile_type: any\ntype: httpd_sys_content_t\nuser: system_u\nrange: s0\nrestore: [/srv/web]',
    required: { target: formatted('Regular expression that matches whole paths', target) },
    optional: {
      file_type: choice(
        'Type of the files',
        ['any', 'file', 'directory', 'symlink', 'socket', 'pipe', 'block', 'character'],
        'any',
      ),
      type: formatted('SELinux type of the files; <<none>> if they are not labeled', fileTypeName),
      user: formatted('SELinux user of the files; default in a new record: system_u', userName),
      range: formatted('MLS range; default in a new record: s0', range),
      restore: list(
        'Paths to relabel according to the policy, with everything below them',
        formatted('A path', restoredPath),
      ),
      ensure,
    },
    identifiedBy: ({ file_type }) => (file_type == null ? ['target'] : ['target', 'file_type']),
    identity: ({ target, file_type }) =>
      file_type == null || file_type === 'any' ? String(target) : `${String(file_type)} ${String(target)}`,
    presentNeeds: ['type'],
  }),
};
