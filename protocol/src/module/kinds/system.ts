import { boolean, formatted, integer, line, list, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

const word = (description: string) => formatted(description, format.aptSourceWord);

export const systemKinds = {
  'cron-unix': defineKind({
    description: 'A cron job',
    platforms: ['linux', 'macos'],
    example: 'name: backup\nuser: root\nschedule: "5 3 * * *"\ncommand: /usr/local/bin/backup',
    required: {
      name: formatted('Name of the job', format.cronName),
      user: formatted('User that the job runs as', format.unixAccount),
      schedule: formatted('The five fields of cron, or a name such as @daily', format.cronSchedule),
      command: text('Command line', format.allOf(format.notEmpty, format.oneLine)),
    },
    optional: { ensure },
    identifiedBy: ['user', 'name'],
    identity: (body) => joined(body.user, '/', body.name),
  }),
  sysctl: defineKind({
    description: 'A kernel parameter',
    platforms: ['linux'],
    example: 'key: net.ipv4.ip_forward\nvalue: "1"',
    required: { key: formatted('Name of the parameter', format.sysctlKey), value: line('Value of the parameter') },
    optional: { ensure },
    canonical: format.canonicalSysctlKey,
  }),
  'apt-repository': defineKind({
    description: 'A package source for apt',
    platforms: ['linux'],
    example: 'name: example\nuris: ["https://apt.example.org"]\nsuites: [stable]\ncomponents: [main]',
    required: {
      name: formatted('Name of the source', format.plainName),
      uris: list('Addresses of the source', text('An address', format.aptSourceWord), { atLeast: 1 }),
      suites: list('Suites', word('A suite'), { atLeast: 1 }),
    },
    optional: {
      components: list('Components', word('A component')),
      signed_by: text('The ASCII-armored public key that verifies the signatures of the source', format.notEmpty),
      ensure,
    },
  }),
  'dnf-repository': defineKind({
    description: 'A package source for dnf',
    platforms: ['linux'],
    example: 'name: example\nbaseurl: ["https://rpm.example.org/$releasever/$basearch"]\ngpgcheck: true',
    required: { name: formatted('ID of the repository', format.plainName) },
    optional: {
      title: line('Name of the source for people; default: its id'),
      baseurl: list('Addresses of the source', text('An address', format.aptSourceWord), { atLeast: 1 }),
      metalink: text('Address of a list of mirrors, with checksums', format.aptSourceWord),
      mirrorlist: text('Address of a list of mirrors', format.aptSourceWord),
      gpgkey: text('The ASCII-armored public key that verifies the packages', format.notEmpty),
      gpgcheck: boolean('Whether the signatures of packages are verified; default: true with gpgkey'),
      repo_gpgcheck: boolean('Whether the signature of the list of packages is verified'),
      enabled: boolean('Whether dnf uses the source'),
      priority: integer('A lower number takes precedence over other sources', 1, 99),
      excludepkgs: list('Names or patterns of packages that are ignored', word('A name')),
      ensure,
    },
  }),
  hostname: defineKind({
    description: 'The name of the machine',
    platforms: ['linux', 'macos'],
    example: 'name: web-1',
    required: { name: formatted('Host name', format.hostname) },
    optional: { ensure },
    // A machine has one host name, so two different names must conflict.
    identifiedBy: ['name'],
    identity: () => 'hostname',
  }),
  timezone: defineKind({
    description: 'The time zone of the machine',
    platforms: ['linux', 'macos'],
    example: 'name: Europe/Paris',
    required: { name: formatted('Time zone', format.timezone) },
    optional: { ensure },
    identifiedBy: ['name'],
    identity: () => 'timezone',
  }),
};
