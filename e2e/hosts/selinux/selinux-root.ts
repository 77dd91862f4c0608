import { derivedRoot } from '../derived-root.ts';

/** Builds a Debian root with an SELinux policy in its store, and the programs that change it. */
export const selinuxRoot = (): Promise<string> =>
  derivedRoot({
    name: 'selinux',
    packages: ['policycoreutils-python-utils', 'selinux-policy-default', 'selinux-utils', 'netbase'],
  });
