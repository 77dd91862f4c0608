import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { applyUser, rememberUser } from './apply.ts';
import { diffUser, diffUserRemoval } from './diff.ts';
import { removeOrRestoreUser } from './removal.ts';
import { bodyOf, getsHome, homeOf, lookAtUser, type SeenUser, type UserBefore } from './seen.ts';
import { declaresSignIn } from './sign-in.ts';

/** An account in /etc/passwd, managed with the tools of shadow-utils. */
export const userUnix = defineProvider<'user-unix', SeenUser, UserBefore>({
  type: 'user-unix',
  fields: {
    name: 'text',
    uid: 'integer?',
    primary_group: 'text?',
    additional_groups: 'list?',
    groups_append: 'list?',
    comment: 'text?',
    home: 'text?',
    shell: 'text?',
    password_hash: 'text?',
    locked: 'boolean?',
    expires: 'text?',
    password_min_days: 'integer?',
    password_max_days: 'integer?',
    password_warn_days: 'integer?',
    password_inactive_days: 'integer?',
    system: 'boolean?',
    create_home: 'boolean?',
    remove_home: 'boolean?',
    ensure: 'text?',
  },
  brings: () => ['accounts'],
  makes: (resource, { user }) => (user === null && getsHome(bodyOf(resource)) ? [homeOf(bodyOf(resource))] : []),
  watched: (resource) => ['/etc/passwd', '/etc/group', ...(declaresSignIn(bodyOf(resource)) ? ['/etc/shadow'] : [])],

  check(resource) {
    const { name, home, shell, comment, password_hash, locked } = bodyOf(resource);
    checkAccountName(name);
    // Repeats the check done on upload, which could not see the values of secrets. chpasswd would store a plaintext
    // password as if it were a hash.
    if (password_hash != null && !/^(\$[a-z0-9]{1,8}\$[^\s:!*\\\x00-\x1f\x7f]{8,400}|[!*])$/.test(password_hash))
      throw new HostFailure(
        '`password_hash` is not a hash of a password; make one with mkpasswd, and never declare a plain password',
      );
    if (password_hash === '!' && locked === false)
      throw new HostFailure('an account without a password is always locked: remove `locked`, or declare a hash');
    for (const path of [home, shell, comment])
      if (path != null && /[:\x00-\x1f\x7f]/.test(path))
        throw new HostFailure(
          `${JSON.stringify(path)} cannot be a value in /etc/passwd, which allows no ":" and no control characters`,
        );
  },

  observe: (resource, _circumstances, machine) => lookAtUser(resource, null, machine),
  diff: diffUser,
  remember: rememberUser,
  apply: applyUser,
  observeForRemoval: lookAtUser,
  diffRemoval: (resource, before, seen) => diffUserRemoval(resource, before, seen),
  remove: (resource, before, _seen, _difference, machine) => removeOrRestoreUser(resource, before, machine),
});

/** Repeats the orchestrator's check, because the name becomes an argument of programs and a field in files. */
export function checkAccountName(name: string): void {
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$/.test(name))
    throw new HostFailure(`${JSON.stringify(name)} is not a valid account name`);
  if (/^\d+$/.test(name))
    throw new HostFailure(`${name} would be interpreted as the number of an account, not as its name`);
}
