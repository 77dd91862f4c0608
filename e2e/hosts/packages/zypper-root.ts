import { derivedRoot } from '../derived-root.ts';
import { fileServerUp, urlOf } from '../registries/package-files.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from '../subjects/subject.ts';
import type { PackageManager } from './package-agent.ts';
import { buildRpms, installedRpms, rpmDatabase, rpms } from './rpm-packages.ts';

// `rpmdb2solv` of libsolv fails if the database had packages and has none now, so `release` is always installed.
const finish = `
mkdir -p "$new/etc/zypp/repos.d"
${rpmDatabase}cat > "$new/etc/zypp/repos.d/tests.repo" <<'END'
[tests]
name=packages made for tests
baseurl=file:///srv/rpms
enabled=1
autorefresh=0
gpgcheck=0
END
${buildRpms}spec nginx 0 1.27 '' ''
spec bonus 0 1.0 '' ''
spec release 0 1.0 '' ''
mkdir "$new/srv/extra"
mv "$new"/srv/rpms/noarch/bonus-* "$new/srv/extra"
for repository in rpms extra; do chroot "$new" createrepo_c --quiet "/srv/$repository"; done
chroot "$new" rpm --initdb
chroot "$new" rpm --install /srv/rpms/noarch/release-1.0-1.noarch.rpm
rm -rf "$new/srv/build" "$new/root/rpmbuild" "$new/root/.rpmdb"
`;

/**
 * Builds a Debian root with zypper, an rpm database, a repository with several versions of test packages, and another
 * repository, which is not configured, in `/srv/extra`.
 */
export const zypperRoot = (): Promise<string> =>
  derivedRoot({ name: 'zypper', packages: ['zypper', 'rpm', 'createrepo-c'], finish });

export const zypper: PackageManager = {
  kind: 'package-zypper',
  program: 'zypper',
  // Without the package that the root itself contains.
  installed: `${installedRpms} | sed '/^release /d'`,
  install: '/usr/bin/zypper -n install',
  remove: 'rpm --erase',
  runsSlow: 'rpm -q slow > /dev/null',
  lockedText: 'is locked by the application',
};

// The rpm database, and libzypp's records, such as which packages were installed as dependencies.
const volatile = [...volatilePaths, '/var/lib/rpm', '/var/lib/zypp'];
const common = { state: installedRpms, slow: true, volatile } as const;

export const packageZypperSubjects: Subject[] = [
  {
    ...common,
    name: 'package-zypper with a version and dependencies',
    desired: { 'package-zypper': { name: 'hello', version: '1.0' } },
    // The latest version has a higher epoch than the others.
    changed: { 'package-zypper': { name: 'hello', version: 'latest' } },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-1.1-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-zypper, previously another version',
    prepare: 'zypper -n install hello=1.1',
    desired: { 'package-zypper': { name: 'hello', version: '1.0' } },
    changed: { 'package-zypper': { name: 'hello', ensure: 'absent' } },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-0.9-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-zypper from a file, with dependencies from the repository',
    prepare: fileServerUp(rpms),
    desired: { 'package-zypper': { name: 'hello', url: urlOf('hello-1.0-1.noarch.rpm') } },
    changed: { 'package-zypper': { name: 'hello', url: urlOf('hello-0.9-1.noarch.rpm') } },
    hashed: { desired: `${rpms}/hello-1.0-1.noarch.rpm`, changed: `${rpms}/hello-0.9-1.noarch.rpm` },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-1.1-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-zypper on hold',
    desired: { 'package-zypper': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-zypper': { name: 'hello', version: '1.1', hold: true } },
    // `zypper removelock` would leave an empty file.
    tamper: 'rm /etc/zypp/locks',
    moved: ['hold'],
  },
  {
    ...common,
    name: 'package-zypper on hold, previously locked with others',
    prepare: 'zypper -n install hello=1.1; zypper -n addlock hello; zypper -n addlock other',
    desired: { 'package-zypper': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-zypper': { name: 'hello', hold: false } },
    // `zypper removelock` would also change the empty lines between the other locks.
    tamper: `sed -i '1,/^solvable_name: hello$/d' /etc/zypp/locks`,
    moved: ['hold'],
  },
];
