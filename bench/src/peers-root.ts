import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { baseRoot, cacheFolder, debianMirror, suite } from '../../e2e/hosts/base-root.ts';
import { peers } from './peers.ts';

/** The root of the test hosts with the peers in it: built once, kept, so that this machine is not changed by them. */

const packages = peers.flatMap((peer) => peer.packages);
/** Raised when `build` below changes. */
const recipe = 1;
const buildLimitMs = 15 * 60_000;

// What the packages would start is not started, neither here nor at boot: a run is what is measured.
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
mount -t proc proc "$new/proc"
chroot "$new" apt-get update -qq
chroot "$new" apt-get install -qq --yes --no-install-recommends $packages
umount "$new/proc"
find "$new/etc/systemd/system" -type l \\( -name 'cf*.service' -o -name 'puppet*.service' \\) -delete
for unit in cfengine3 cf-execd cf-serverd cf-monitord puppet; do ln -sf /dev/null "$new/etc/systemd/system/$unit.service"; done
mkdir -p "$new/var/lib/cfengine3/modules/packages/vendored"
cp "$new"/usr/share/cfengine3/masterfiles/modules/packages/vendored/apt_get.mustache "$new/var/lib/cfengine3/modules/packages/apt_get"
chmod 700 "$new/var/lib/cfengine3/modules/packages/apt_get"
ln -sf /usr/bin/python3 "$new/usr/bin/cfengine-selected-python"
: > "$new/etc/apt/sources.list"
: > "$new/etc/resolv.conf"
rm -rf "$new/usr/sbin/policy-rc.d" "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
mv -T "$new" "$root"
`;

/** @returns the folder of the root, built now when there is none */
export async function peersRoot(): Promise<string> {
  const base = await baseRoot();
  const key = createHash('sha256')
    .update(JSON.stringify([base, packages, recipe]))
    .digest('hex');
  const root = join(cacheFolder(), `peers-${key.slice(0, 12)}`);
  if (existsSync(root)) return root;
  console.error(`building a root with ${packages.join(', ')} in ${root} …`);
  await new Promise<void>((resolve, reject) => {
    const env = {
      ...{ PATH: process.env.PATH, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
      ...{ base, root, suite, mirror: debianMirror(), packages: packages.join(' ') },
    };
    // The mount of /proc is this process's alone.
    const args = ['--mount', '--propagation', 'private', 'flock', `${root}.lock`, 'sh', '-c', build];
    execFile('unshare', args, { env, timeout: buildLimitMs, maxBuffer: 64 * 1024 * 1024 }, (error, _stdout, stderr) =>
      error ? reject(new Error(`the peers could not be installed: ${stderr.trim() || error.message}`)) : resolve(),
    );
  });
  return root;
}
