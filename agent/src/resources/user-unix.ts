import { HostFailure } from '../host/failure.ts';
import { defineProvider } from './provider/define-provider.ts';
import { applyUser, rememberUser } from './user-unix/apply.ts';
import { diffUser, diffUserRemoval } from './user-unix/diff.ts';
import { removeOrRestoreUser } from './user-unix/removal.ts';
import { bodyOf, getsHome, homeOf, lookAtUser, type SeenUser, type UserBefore } from './user-unix/seen.ts';

/** An account in /etc/passwd, which the programs of shadow-utils change. */
export const userUnix = defineProvider<'user-unix', SeenUser, UserBefore>({
  type: 'user-unix',
  fields: {
    name: 'text',
    uid: 'integer?',
    primary_group: 'text?',
    additional_groups: 'list?',
    home: 'text?',
    shell: 'text?',
    system: 'boolean?',
    ensure: 'text?',
  },
  brings: () => ['accounts'],
  makes: (resource, { user }) => (user === null && getsHome(bodyOf(resource)) ? [homeOf(bodyOf(resource))] : []),
  watched: () => ['/etc/passwd', '/etc/group'],

  check(resource) {
    const { name, home, shell } = bodyOf(resource);
    checkAccountName(name);
    for (const path of [home, shell])
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
