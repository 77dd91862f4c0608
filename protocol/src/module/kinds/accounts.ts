import { boolean, formatted, integer, line, list, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

// 4294967295 is (uid_t)-1, which means "do not change" to system calls.
const largestId = 4_294_967_294;

const unixAccount = (description: string) => formatted(description, format.unixAccount);
const windowsAccount = (description: string) => formatted(description, format.windowsAccount);

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
      home: formatted('Home directory', format.unixDirectory, { pattern: '^/' }),
      shell: formatted('Login shell', format.unixFile, { pattern: '^/' }),
      system: boolean('Whether the account is created as a system account'),
      ensure,
    },
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
    optional: { gid: integer('Group number', 0, largestId), ensure },
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
      user: unixAccount('User as whom the key can sign in'),
      key: formatted('Type and key, such as "ssh-ed25519 AAAAC3…"', format.sshKey),
    },
    optional: { comment: line('The comment after the key'), ensure },
    identifiedBy: ['user', 'key'],
    identity: (body) => joined(body.user, '/', body.key),
  }),
};
