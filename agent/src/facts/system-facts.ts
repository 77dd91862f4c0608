import { namesIn } from '../host/read-system.ts';

/**
 * Facts about the operating system that are derived from other facts, or from files provided by the kernel and the init
 * system.
 */

/** Families by the names in the ID and ID_LIKE fields of os-release(5). */
const families: Readonly<Record<string, string>> = {
  ...{ debian: 'debian', ubuntu: 'debian' },
  ...{ rhel: 'redhat', fedora: 'redhat', centos: 'redhat' },
  ...{ suse: 'suse', opensuse: 'suse', sles: 'suse' },
  ...{ arch: 'arch', alpine: 'alpine' },
};

/**
 * Returns the family of a distribution: `debian`, `redhat`, `suse`, `arch`, or `alpine`; its own name if it belongs to
 * none of them.
 * @param like names of the distributions from which it is derived, closest first
 */
export function familyOf(distro: string | null, like: readonly string[]): string | null {
  for (const name of [distro ?? '', ...like]) if (Object.hasOwn(families, name)) return families[name] as string;
  return distro;
}

/**
 * Returns the major version of the installed systemd; null if systemd is not installed. Reads the version from the name
 * of systemd's shared library, because running a program for each collection would cost more.
 */
export function systemdVersion(root: string): string | null {
  const usrLib = `${root}/usr/lib`;
  const ofArchitectures = namesIn(usrLib).filter((name) => name.includes('-linux-gnu'));
  for (const directory of ['', ...ofArchitectures].map((name) => `${usrLib}/${name}/systemd`))
    for (const name of namesIn(directory)) {
      const version = /^libsystemd-shared-(\d{1,5})\b.*\.so$/.exec(name)?.[1];
      if (version !== undefined) return version;
    }
  return null;
}
