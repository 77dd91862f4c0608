import { derivedRoot } from '../derived-root.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from '../subjects/subject.ts';
import type { PackageManager } from './package-agent.ts';

// `pkg REPOSITORY NAME VERSION FIELDS SCRIPTS` builds a package and its entry in the database of the repository. pacman
// prefers the repository that is first in its configuration. `vercmp` is taken from the package makepkg, which has many
// dependencies.
const finish = `
cat > "$new/etc/pacman.conf" <<'END'
[options]
HoldPkg = pacman
Architecture = auto
SigLevel = Never

[next]
Server = file:///srv/pacman/next

[tests]
Server = file:///srv/pacman/tests

[old]
Server = file:///srv/pacman/old
END
pkg() {
  tree=$new/srv/build/tree entry=$new/srv/build/$1/$2-$3 name=$2-$3-any.pkg.tar.gz file=$new/srv/pacman/$1/$2-$3-any.pkg.tar.gz
  mkdir -p "$tree/etc/$2.d" "$tree/usr/share/$2" "$entry" "$new/srv/pacman/$1"
  echo "$2 $3" > "$tree/usr/share/$2/version"
  echo "setting = 1" > "$tree/etc/$2.d/main.conf"
  printf 'pkgname = %s\\npkgver = %s\\npkgdesc = made for tests\\nbuilddate = 1\\npackager = tests\\nsize = 1\\narch = any\\nbackup = etc/%s.d/main.conf\\n' "$2" "$3" "$2" > "$tree/.PKGINFO"
  printf '%%FILENAME%%\\n%s\\n\\n%%NAME%%\\n%s\\n\\n%%VERSION%%\\n%s\\n\\n%%ARCH%%\\nany\\n\\n' "$name" "$2" "$3" > "$entry/desc"
  for field in $4; do
    printf '%s = %s\\n' "\${field%%=*}" "\${field#*=}" >> "$tree/.PKGINFO"
    case $field in
      depend=*) printf '%%DEPENDS%%\\n%s\\n\\n' "\${field#*=}" >> "$entry/desc" ;;
      provides=*) printf '%%PROVIDES%%\\n%s\\n\\n' "\${field#*=}" >> "$entry/desc" ;;
    esac
  done
  if [ -n "$5" ]; then printf '%s\\n' "$5" > "$tree/.INSTALL"; fi
  (cd "$tree" && tar --owner=0 --group=0 -czf "$file" .PKGINFO $(ls -A | grep -v PKGINFO))
  printf '%%CSIZE%%\\n%s\\n\\n%%SHA256SUM%%\\n%s\\n\\n' "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -c1-64)" >> "$entry/desc"
  rm -r "$tree"
}
pkg tests hello 1.0-1 depend=lib ''
pkg next hello 1.1-1 depend=lib ''
pkg old hello 1:0.9-1 depend=lib ''
pkg tests lib 2.0-1 '' ''
pkg tests needs 1.0-1 depend=lib ''
pkg tests other 1.0-1 depend=lib ''
pkg tests unmet 1.0-1 depend=nowhere-to-be-found ''
pkg tests web 1.0-1 provides=webserver ''
pkg tests nginx 1.27-1 '' ''
pkg tests grumbles 1.0-1 '' 'post_install() {
  echo I would rather not
  return 1
}'
pkg extra bonus 1.0-1 '' ''
pkg tests slow 1.0-1 '' 'post_install() {
  while test -e /run/slow-waits; do sleep 0.05; done
}'
for repository in next tests old extra; do
  (cd "$new/srv/build/$repository" && tar -czf "$new/srv/pacman/$repository/$repository.db" *)
done
rm -rf "$new/srv/build"
chroot "$new" sh -euc 'cd /tmp
  apt-get download -qq makepkg
  dpkg --fsys-tarfile makepkg_*.deb | tar -x -C / ./usr/bin/vercmp
  rm makepkg_*.deb'
mkdir -p "$new/var/lib/pacman"
chroot "$new" pacman -Sy > /dev/null
`;

/**
 * Builds a Debian root with pacman, three repositories with several versions of test packages, and the repository `extra`,
 * which is not configured.
 */
export const pacmanRoot = (): Promise<string> =>
  derivedRoot({ name: 'pacman', packages: ['pacman-package-manager'], finish });

export const pacman: PackageManager = {
  kind: 'package-pacman',
  program: 'pacman',
  // Without packages, pacman exits with 1.
  installed: 'pacman -Q || true',
  install: '/usr/bin/pacman -S --noconfirm',
  remove: '/usr/bin/pacman -R --noconfirm',
  // pacman records a package before its script runs.
  runsSlow: 'test -e /var/lib/pacman/local/slow-1.0-1/desc',
  lockedText: 'unable to lock database',
};

/** Path of a package in a repository. */
const pacmanFile = (repository: string, name: string): string => `/srv/pacman/${repository}/${name}-any.pkg.tar.gz`;

// pacman's database, and the cache of `ldconfig`, which pacman rebuilds after each transaction.
const volatile = [...volatilePaths, '/var/lib/pacman', '/etc/ld.so.cache'];
const common = { state: pacman.installed, slow: true, volatile } as const;

export const packagePacmanSubjects: Subject[] = [
  {
    ...common,
    name: 'package-pacman with a version and dependencies',
    desired: { 'package-pacman': { name: 'hello', version: '1.0' } },
    // The first repository decides, although another one has a higher epoch.
    changed: { 'package-pacman': { name: 'hello', version: 'latest' } },
    tamper: `pacman -U --noconfirm ${pacmanFile('old', 'hello-1:0.9-1')}`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-pacman, previously another version',
    prepare: `pacman -S --noconfirm hello`,
    desired: { 'package-pacman': { name: 'hello', version: '1.0' } },
    changed: { 'package-pacman': { name: 'hello', ensure: 'absent' } },
    tamper: `pacman -U --noconfirm ${pacmanFile('old', 'hello-1:0.9-1')}`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-pacman on hold',
    desired: { 'package-pacman': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-pacman': { name: 'hello', version: '1.1', hold: true } },
    tamper: `sed -i '/^IgnorePkg = hello$/d' /etc/pacman.conf`,
    moved: ['hold'],
  },
  {
    ...common,
    name: 'package-pacman on hold, previously ignored with others',
    prepare: `pacman -S --noconfirm hello; sed -i 's/^HoldPkg.*/&\\nIgnorePkg = web hello lib/' /etc/pacman.conf`,
    desired: { 'package-pacman': { name: 'hello', version: '1.0', hold: true } },
    changed: { 'package-pacman': { name: 'hello', hold: false } },
    tamper: `sed -i 's/ hello / /' /etc/pacman.conf`,
    moved: ['hold'],
  },
];
