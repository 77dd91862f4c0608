import { boolean, formatted, integer, line, list, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

// 4294967295 is (uid_t)-1, which means "do not change" to system calls.
const largestId = 4_294_967_294;

const unixAccount = (description: string) => formatted(description, format.unixAccount);
/** A password age in days. The shadow-utils programs store -1 as an empty field. */
const days = (description: string) => integer(`${description}; -1 for none`, -1, 99_999);

const windowsAccount = (description: string) => formatted(description, format.windowsAccount);

const noHomes = new Set(['/', '/nonexistent', '/dev/null', '/proc', '/run', '/bin', '/sbin', '/usr/sbin']);

/** Reports whether a path means that there is no home directory, or is a system directory. */
export const isNoHome = (home: string): boolean => noHomes.has(format.withoutClosingSlash(home));

export const accountKinds = {
  'user-unix': defineKind({
    description: 'A user account',
    platforms: ['linux', 'macos'],
    example: 'name: deploy\nhome: /srv/deploy\nshell: /bin/bash\nadditional_groups: [www-data]',
    required: { name: unixAccount('Name of the account') },
    optional: {
      uid: integer('User number', 0, largestId),
      primary_group: unixAccount('Primary group'),
      additional_groups: list(
        'All supplementary groups; the account is removed from all others',
        unixAccount('A group'),
      ),
      groups_append: list('Supplementary groups to add the account to; it stays in all others', unixAccount('A group')),
      comment: formatted('Full name or other comment on the account', format.accountComment),
      home: formatted('Home directory', format.unixDirectory, { pattern: '^/' }),
      shell: formatted('Login shell', format.unixFile, { pattern: '^/' }),
      password_hash: text(
        'Hash of the password as in /etc/shadow, for example the output of mkpasswd, or "!" for no password',
        format.passwordHash,
      ),
      locked: boolean('Whether signing in with the password is disabled; keys still work'),
      expires: formatted('Day from which the account is disabled, such as 2030-01-31, or never', format.expiryDay),
      password_min_days: days('Days before the password may be changed again'),
      password_max_days: days('Days after which the password must be changed'),
      password_warn_days: days('Days of warning before the password must be changed'),
      password_inactive_days: days('Days from the expiry of the password until the account is disabled'),
      system: boolean('Whether the account is created as a system account'),
      create_home: boolean(
        'Whether a new account gets its home directory; default: true, but false for a system account',
      ),
      remove_home: boolean('Whether ensure: absent also removes the home directory with its content, permanently'),
      ensure,
    },
    exclusive: [['additional_groups', 'groups_append']],
    faults: ({ create_home, remove_home, home, ensure }) => [
      ...(create_home === true && ensure !== 'absent' && typeof home === 'string' && isNoHome(home)
        ? [
            {
              path: ['create_home'] as const,
              message: `cannot create ${home}: declare another home, or omit create_home`,
            },
          ]
        : []),
      ...(remove_home === true && ensure !== 'absent' && !(typeof ensure === 'string' && ensure.includes('${{'))
        ? [{ path: ['remove_home'] as const, message: 'requires ensure: absent: add it' }]
        : []),
    ],
    sensitive: ['password_hash'],
  }),
  'user-windows': defineKind({
    description: 'A local user account',
    platforms: ['windows'],
    example: 'name: deploy\npassword: "${{ secrets.deploy }}"\ngroups: [Users]',
    isSupported: false,
    required: { name: windowsAccount('Name of the account') },
    optional: {
      full_name: line('Full name'),
      description: line('Description'),
      password: text('Password', format.allOf(format.oneLine, format.noNul)),
      groups: list('Local groups of the account', windowsAccount('A group')),
      account_disabled: boolean('Whether signing in is disabled'),
      password_never_expires: boolean('Whether the password never expires'),
      ensure,
    },
    sensitive: ['password'],
  }),
  'group-unix': defineKind({
    description: 'A group',
    platforms: ['linux', 'macos'],
    example: 'name: deploy\ngid: 1500',
    required: { name: unixAccount('Name of the group') },
    optional: {
      gid: integer('Group number', 0, largestId),
      members: list('All members; all other users are removed from the group', unixAccount('A user')),
      members_append: list('Users to add to the group; all other members stay', unixAccount('A user')),
      system: boolean('Whether the group is created with a GID for system groups'),
      ensure,
    },
    exclusive: [['members', 'members_append']],
  }),
  'group-windows': defineKind({
    description: 'A local group',
    platforms: ['windows'],
    example: 'name: Deployers\ndescription: may deploy',
    isSupported: false,
    required: { name: windowsAccount('Name of the group') },
    optional: { description: line('Description'), ensure },
  }),
  'ssh-authorized-key': defineKind({
    description: 'An SSH key that can sign in as a user',
    platforms: ['linux', 'macos'],
    example: `user: deploy\nkey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}\ncomment: ci`,
    required: {
      user: unixAccount('User that the key can sign in as'),
      key: formatted('Type and key, such as "ssh-ed25519 AAAAC3…"', format.sshKey),
    },
    optional: { comment: line('The comment after the key'), ensure },
    identifiedBy: ['user', 'key'],
    identity: (body) => joined(body.user, '/', body.key),
  }),
};
