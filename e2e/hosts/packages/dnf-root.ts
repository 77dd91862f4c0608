import { derivedRoot } from '../derived-root.ts';
import { fileServerUp, urlOf } from '../registries/package-files.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from '../subjects/subject.ts';
import type { PackageManager } from './package-agent.ts';
import { buildRpms, installedRpms, rpmDatabase, rpms } from './rpm-packages.ts';

// Keeps only the dnf plugin that the tests use, because the plugin `local` adds a repository whose packages must be
// signed.
const finish = `
find "$new"/usr/lib/python3/dist-packages/dnf-plugins -name '*.py' ! -name versionlock.py -delete
mkdir -p "$new/etc/yum.repos.d"
${rpmDatabase}cat > "$new/etc/yum.repos.d/tests.repo" <<'END'
[tests]
name=packages made for tests
baseurl=file:///srv/rpms
gpgcheck=0
END
${buildRpms}chroot "$new" createrepo_c --quiet /srv/rpms
for stream in 1 2; do cat << END
---
document: modulemd
version: 2
data:
  name: engine
  stream: "$stream"
  version: 1
  context: aaaaaaa$stream
  arch: noarch
  summary: made for tests
  description: made for tests
  license: { module: [MIT] }
  artifacts: { rpms: ["engine-0:$stream.0-1.noarch"] }
END
done > "$new/srv/rpms/modules.yaml"
chroot "$new" modifyrepo_c --mdtype=modules /srv/rpms/modules.yaml /srv/rpms/repodata > /dev/null
echo module_platform_id=platform:el9 >> "$new/etc/dnf/dnf.conf"
chroot "$new" rpm --initdb
rm -rf "$new/srv/build" "$new/root/rpmbuild" "$new/root/.rpmdb"
`;

/** Builds a Debian root with dnf and its plugin versionlock, an rpm database, and a repository with several versions of test packages. */
export const rpmRoot = (): Promise<string> =>
  derivedRoot({ name: 'rpm', packages: ['dnf', 'rpm', 'createrepo-c', 'dnf-plugins-core'], finish });

export const dnf: PackageManager = {
  kind: 'package-dnf',
  program: 'dnf',
  installed: installedRpms,
  install: '/usr/bin/dnf -qy install',
  remove: 'rpm --erase',
  runsSlow: 'rpm -q slow > /dev/null',
  lockedText: 'already locked by',
};

// The rpm database, and dnf's record of which packages the user requested.
const volatile = [...volatilePaths, '/var/lib/rpm', '/var/lib/dnf'];
const common = { state: installedRpms, slow: true, volatile } as const;

const lockList = '/etc/dnf/plugins/versionlock.list';

export const packageDnfSubjects: Subject[] = [
  {
    ...common,
    name: 'package-dnf with a version and dependencies',
    desired: { 'package-dnf': { name: 'hello', version: '1.0' } },
    // The latest version has a higher epoch than the others.
    changed: { 'package-dnf': { name: 'hello', version: 'latest' } },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-1.1-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-dnf from a file, with dependencies from the repository',
    prepare: fileServerUp(rpms),
    desired: { 'package-dnf': { name: 'hello', url: urlOf('hello-1.0-1.noarch.rpm') } },
    changed: { 'package-dnf': { name: 'hello', url: urlOf('hello-0.9-1.noarch.rpm') } },
    hashed: { desired: `${rpms}/hello-1.0-1.noarch.rpm`, changed: `${rpms}/hello-0.9-1.noarch.rpm` },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-1.1-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-dnf from a file, previously another version',
    prepare: `${fileServerUp(rpms)}dnf -qy install hello-1.1`,
    desired: { 'package-dnf': { name: 'hello', url: urlOf('hello-1.0-1.noarch.rpm'), version: '1.0' } },
    changed: { 'package-dnf': { name: 'hello', version: 'latest' } },
    hashed: { desired: `${rpms}/hello-1.0-1.noarch.rpm` },
    tamper: 'rpm --upgrade /srv/rpms/noarch/hello-0.9-1.noarch.rpm',
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-dnf on hold',
    desired: { 'package-dnf': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-dnf': { name: 'hello', version: '1.1', hold: true } },
    tamper: 'dnf -q versionlock delete hello > /dev/null',
    moved: ['hold'],
  },
  {
    ...common,
    name: 'package-dnf on hold, previously locked at another version',
    prepare: `dnf -qy install hello-1.1; printf 'hello-0:1.1-1.*\n# comment\nother\n' > ${lockList}`,
    desired: { 'package-dnf': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-dnf': { name: 'hello', hold: false } },
    tamper: `sed -i /hello/d ${lockList}`,
    moved: ['hold'],
  },
  {
    ...common,
    name: 'dnf-module, enabled',
    desired: { 'dnf-module': { name: 'engine', stream: '1' } },
    changed: { 'dnf-module': { name: 'engine', stream: '2' } },
    tamper: 'dnf -qy module reset engine',
    moved: ['stream', 'state'],
  },
  {
    ...common,
    name: 'dnf-module, disabled, previously enabled',
    prepare: 'dnf -qy module enable engine:2',
    desired: { 'dnf-module': { name: 'engine', state: 'disabled' } },
    changed: { 'dnf-module': { name: 'engine', ensure: 'absent' } },
    tamper: 'dnf -qy module enable engine:1',
    moved: ['stream', 'state'],
  },
];
