import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The Debian root that every test host starts from. It is built once with debootstrap, kept, and never changed
 * afterwards.
 */

export const suite = 'bookworm';
/** Packages in addition to Debian's required ones. */
const packages = [
  ...['systemd', 'systemd-sysv', 'dbus', 'apt', 'passwd', 'iproute2', 'procps', 'ca-certificates', 'cron', 'sudo'],
];
/** Increased when `finish` below changes. */
const recipe = 1;
const defaultMirror = 'http://deb.debian.org/debian';
const buildLimitMs = 10 * 60_000;

/** Cache between test runs: this root, and downloaded packages. */
export const cacheFolder = (): string =>
  join(process.env.MUSTER_TEST_CACHE ?? '/var/tmp/muster-test-cache', `hosts-${process.getuid?.() ?? 0}`);

// No background service may hold the lock of apt or write into a root that is being compared.
const finish = `
rm -rf "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/* "$new"/var/log/*.log "$new"/var/log/apt
: > "$new/etc/machine-id"
: > "$new/etc/apt/sources.list"
: > "$new/etc/resolv.conf"
rm -f "$new"/var/lib/dbus/machine-id "$new"/etc/ssh/ssh_host_*
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \\
  e2scrub_reap.service systemd-tmpfiles-clean.timer getty.target console-getty.service; do
  ln -sf /dev/null "$new/etc/systemd/system/$unit"
done
`;

// Unpacks in memory, because dpkg waits for the disk at every file. Copies the root next to its target and renames it
// under a lock, so that a killed build leaves nothing that the next build would use. The mounts are private to the
// build.
const build = `
set -eu
if [ -d "$base" ]; then exit 0; fi
rm -rf --one-file-system "$base.building"
mkdir "$base.building"
mount -t tmpfs -o size=2g,mode=755,dev,suid tmpfs "$base.building"
new=$base.building/root
debootstrap --variant=minbase --include="$packages" "$suite" "$new" "$mirror" > "$base.log" 2>&1 || {
  tail -n 15 "$base.log" >&2
  exit 1
}
${finish}
rm -rf "$base.new"
cp -a "$new" "$base.new"
mv -T "$base.new" "$base"
umount "$base.building"
rmdir "$base.building"
`;

/** @returns the folder of the root; builds it if necessary */
export async function baseRoot(): Promise<string> {
  const mirror = debianMirror();
  const key = createHash('sha256')
    .update(JSON.stringify([packages, suite, recipe, process.arch]))
    .digest('hex');
  const base = join(cacheFolder(), `${suite}-${key.slice(0, 12)}`);
  if (existsSync(base)) return base;
  mkdirSync(cacheFolder(), { recursive: true, mode: 0o755 });
  await new Promise<void>((resolve, reject) => {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', base, suite, mirror, packages: packages.join(',') };
    execFile('setpriv', buildAlone(base, build), { env, timeout: buildLimitMs }, (error, _stdout, stderr) =>
      error ? reject(new Error(`no Debian root could be built from ${mirror}: ${stderr || error.message}`)) : resolve(),
    );
  });
  return base;
}

/** Arguments to setpriv: runs shell text under a lock, and ends it with its parent process. */
export const buildAlone = (root: string, shell: string): string[] => [
  ...['--pdeathsig', 'KILL', '--', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
  ...['flock', `${root}.lock`, 'sh', '-c', shell],
];

/** The mirror to fetch packages from. */
export const debianMirror = (): string => mirrorOf(sources());

/** The apt sources of this machine. */
function sources(): string {
  const folder = '/etc/apt/sources.list.d';
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  return ['/etc/apt/sources.list', ...files]
    .filter((path) => /\.(list|sources)$/.test(path) && existsSync(path))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
}

/** The mirror of Debian itself that this machine uses, else Debian's own. */
export const mirrorOf = (text: string): string =>
  text.match(/^(?:URIs:|deb\s+(?:\[[^\]]*\]\s+)?)\s*(https?:\/\/\S+\/debian)\/?(?:\s|$)/m)?.[1] ?? defaultMirror;
