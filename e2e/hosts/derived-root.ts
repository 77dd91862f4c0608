import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { baseRoot, buildAlone, cacheFolder, debianMirror, suite } from './base-root.ts';

/** A Debian root with packages in addition to those of the base root. */
export interface DerivedRoot {
  name: string;
  packages: readonly string[];
  /** Shell text that runs as the last step of the build. `$new` is the root's directory. */
  finish?: string;
}

/** Build version, which is part of the cache key. Increase it whenever `build` changes. */
const recipe = 1;
const buildLimitMs = 15 * 60_000;

// Prevents packages from starting services. The mounts are private to the build.
const build = `
set -eu
if [ -d "$root" ]; then exit 0; fi
new=$root.building
rm -rf --one-file-system "$new"
cp -a "$base" "$new"
cp /etc/resolv.conf "$new/etc/resolv.conf"
echo "deb $mirror $suite main" > "$new/etc/apt/sources.list"
printf '#!/bin/sh\\nexit 101\\n' > "$new/usr/sbin/policy-rc.d"
chmod 755 "$new/usr/sbin/policy-rc.d"
echo force-unsafe-io > "$new/etc/dpkg/dpkg.cfg.d/build"
mount -t proc proc "$new/proc"
chroot "$new" apt-get update -qq
chroot "$new" apt-get install -qq --yes --no-install-recommends $packages
eval "$finish"
umount "$new/proc"
: > "$new/etc/apt/sources.list"
: > "$new/etc/resolv.conf"
rm -rf "$new/usr/sbin/policy-rc.d" "$new/etc/dpkg/dpkg.cfg.d/build" "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
mv -T "$new" "$root"
`;

/** Returns the root's directory. Builds the root if it does not exist. */
export async function derivedRoot({ name, packages, finish = '' }: DerivedRoot): Promise<string> {
  const base = await baseRoot();
  const key = createHash('sha256')
    .update(JSON.stringify([base, packages, finish, recipe]))
    .digest('hex');
  const root = join(cacheFolder(), `${name}-${key.slice(0, 12)}`);
  if (existsSync(root)) return root;
  await new Promise<void>((resolve, reject) => {
    const env = {
      ...{ PATH: process.env.PATH, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
      ...{ base, root, suite, mirror: debianMirror(), packages: packages.join(' '), finish },
    };
    execFile(
      'setpriv',
      buildAlone(root, build),
      { env, timeout: buildLimitMs, maxBuffer: 64 * 1024 * 1024 },
      (error, _stdout, stderr) =>
        error
          ? reject(new Error(`cannot build a root with ${packages.join(', ')}: ${stderr.trim() || error.message}`))
          : resolve(),
    );
  });
  return root;
}
