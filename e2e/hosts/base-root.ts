import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The Debian release of the test hosts. */
export const suite = 'bookworm';
/** Packages that the root contains in addition to Debian's required ones. */
const packages = [
  ...['systemd', 'systemd-sysv', 'dbus', 'apt', 'passwd', 'iproute2', 'procps', 'ca-certificates', 'cron', 'sudo'],
];
/** Build version, which is part of the cache key. Increase it whenever `finish` changes. */
const recipe = 2;
const defaultMirror = 'http://deb.debian.org/debian';
const buildLimitMs = 10 * 60_000;

/** Returns the directory that caches roots and packages between test runs. */
export const cacheFolder = (): string =>
  join(process.env.MUSTER_TEST_CACHE ?? '/var/tmp/muster-test-cache', `hosts-${process.getuid?.() ?? 0}`);

// Masks background services that would hold apt's lock or write to a root that a test compares, and the generators that
// generate nothing in a container: systemd runs each of them at every boot and every daemon-reload, which took a third of
// the CPU time of the provider tests.
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
mkdir -p "$new/etc/systemd/system-generators"
for path in "$new"/usr/lib/systemd/system-generators/*; do
  case \${path##*/} in
    systemd-fstab-generator | systemd-sysv-generator) ;;
    *) ln -sf /dev/null "$new/etc/systemd/system-generators/\${path##*/}" ;;
  esac
done
`;

// Unpacks in memory, because dpkg calls fsync for every file. Builds under a lock, copies the root next to its target,
// and renames it, so that no build uses the remains of a killed one. The mounts are private to the build.
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

/**
 * Returns the directory with the read-only Debian root that all test hosts use. Builds it with debootstrap if it does
 * not exist.
 */
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
      error ? reject(new Error(`cannot build a Debian root from ${mirror}: ${stderr || error.message}`)) : resolve(),
    );
  });
  return base;
}

/** Returns arguments for setpriv that run shell text under a lock, and kill it when its parent process exits. */
export const buildAlone = (root: string, shell: string): string[] => [
  ...['--pdeathsig', 'KILL', '--', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
  ...['flock', `${root}.lock`, 'sh', '-c', shell],
];

/** Returns the URL of the mirror from which to fetch packages. */
export const debianMirror = (): string => mirrorOf(sources());

/** Returns the text of this machine's apt sources. */
function sources(): string {
  const folder = '/etc/apt/sources.list.d';
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  return ['/etc/apt/sources.list', ...files]
    .filter((path) => /\.(list|sources)$/.test(path) && existsSync(path))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
}

/** Returns the URL of the first Debian mirror in apt sources. Default: deb.debian.org. */
export const mirrorOf = (text: string): string =>
  text.match(/^(?:URIs:|deb\s+(?:\[[^\]]*\]\s+)?)\s*(https?:\/\/\S+\/debian)\/?(?:\s|$)/m)?.[1] ?? defaultMirror;
