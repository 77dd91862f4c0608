import { boolean, formatted, integer, line, list, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

const word = (description: string) => formatted(description, format.aptSourceWord);

const swapFile: format.Check = format.allOf(format.unixFile, format.maxLength(1000), (value) => {
  if (/^\/(dev|proc|sys)\//.test(value)) return 'must be a file, such as /swapfile, not a device';
  return /\s/.test(value) ? 'must not contain spaces' : undefined;
});

const swapSize: format.Check = (value) =>
  /^[1-9]\d{0,6}[MGT]$/.test(value) ? undefined : 'must be a whole number with M, G, or T, such as 512M or 2G';

/** Options in one field of fstab(5). */
const swapOptions: format.Check = format.allOf(format.maxLength(1000), (value) => {
  if (!/^[^\s\x00-\x1f\x7f]+$/.test(value))
    return 'must be options joined by commas without spaces, such as discard,nofail';
  return /(^|,)pri=/.test(value) ? 'must not contain pri=; declare `priority` instead' : undefined;
});

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
    description: 'A package repository for apt',
    platforms: ['linux'],
    example: 'name: example\nuris: ["https://apt.example.org"]\nsuites: [stable]\ncomponents: [main]',
    required: {
      name: formatted('Name of the repository', format.plainName),
      uris: list('Base URLs of the repository', text('A URL', format.aptSourceWord), { atLeast: 1 }),
      suites: list('Suites', word('A suite'), { atLeast: 1 }),
    },
    optional: {
      components: list('Components', word('A component')),
      signed_by: text('The ASCII-armored public key that verifies the signatures of the repository', format.notEmpty),
      ensure,
    },
  }),
  'dnf-repository': defineKind({
    description: 'A package repository for dnf',
    platforms: ['linux'],
    example: 'name: example\nbaseurl: ["https://rpm.example.org/$releasever/$basearch"]\ngpgcheck: true',
    required: { name: formatted('ID of the repository', format.plainName) },
    optional: {
      title: line('Display name of the repository; default: its ID'),
      baseurl: list('Base URLs of the repository', text('A URL', format.aptSourceWord), { atLeast: 1 }),
      metalink: text('URL of a list of mirrors, with checksums', format.aptSourceWord),
      mirrorlist: text('URL of a list of mirrors', format.aptSourceWord),
      gpgkey: text('The ASCII-armored public key that verifies the packages', format.notEmpty),
      gpgcheck: boolean('Whether the signatures of packages are verified; default: true with gpgkey'),
      repo_gpgcheck: boolean('Whether the signature of the list of packages is verified'),
      enabled: boolean('Whether dnf uses the repository'),
      priority: integer('Repositories with lower numbers take precedence', 1, 99),
      excludepkgs: list('Names or patterns of packages that are ignored', word('A name')),
      module_hotfixes: boolean('Whether packages are offered even if a dnf module has packages of the same name'),
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
  locale: defineKind({
    description: 'A locale that is generated on the machine, and whether it is the default',
    platforms: ['linux'],
    example: 'name: de_DE.UTF-8\ncharset: UTF-8\ndefault: true',
    required: { name: formatted('Name of the locale, such as de_DE.UTF-8', format.localeName) },
    optional: {
      charset: formatted(
        'Character set; default: the character set in the name or, if the name has none, in the list of supported locales',
        format.localeCharset,
      ),
      default: boolean('Whether new sessions and services use the locale: LANG in /etc/default/locale'),
      ensure,
    },
    canonical: format.canonicalLocale,
  }),
  swap: defineKind({
    description: 'A swap file that is in use, and its line in `/etc/fstab`',
    platforms: ['linux'],
    example: 'path: /swapfile\nsize: 512M\npriority: 10\noptions: "discard,nofail"',
    required: { path: formatted('Path of the file', swapFile) },
    optional: {
      size: formatted('Size of the file: a whole number with M, G, or T, in powers of 1024', swapSize),
      priority: integer('Swap with a higher priority is used first; by default, the kernel chooses', 0, 32_767),
      options: text('Options joined by commas, such as discard; default in a new line: sw', swapOptions),
      ensure,
    },
    presentNeeds: ['size'],
  }),
};
