import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildAlone, cacheFolder, debianMirror, suite } from '../base-root.ts';
import { type PackageRecipe, recipes } from './packages.ts';

interface Contents {
  /** Names of Debian packages. Dependencies that the base root lacks are fetched too. */
  fetched: readonly string[];
  /** Packages built for the tests. */
  made: readonly PackageRecipe[];
}

const contents = {
  /** The packages for most tests. */
  samples: { fetched: ['nginx-light', 'openrc', 'nftables'], made: recipes },
  /**
   * The packages for the documentation's recipes and for `examples/sites`. Separate, so that only their tests wait for
   * the 25 MB download.
   */
  recipes: {
    fetched: [
      ...['nginx', 'postgresql-15', 'nftables', 'unattended-upgrades', 'prometheus-node-exporter'],
      ...['gunicorn', 'python3-psycopg2'],
    ],
    // Empty packages suffice, because the tests only plan the recipe for containers.
    made: ['docker.io', 'docker-compose'].map((name) => ({ name, version: '20.10' })),
  },
  /** The packages for the modules in `examples/roles`. Built for the recipes root. */
  roles: {
    fetched: [
      ...['chrony', 'logrotate', 'sudo', 'logcheck', 'nullmailer', 'fail2ban', 'nginx'],
      ...['unattended-upgrades', 'powermgmt-base', 'tzdata', 'curl', 'nano', 'ca-certificates'],
    ],
    made: [],
  },
  /** The packages for the modules in `docs/coming-from.md`. */
  idioms: {
    fetched: ['curl', 'less', 'nano', 'acl'],
    // Empty packages suffice, because the tests only remove telnetd, and only plan the modules with the others.
    made: ['telnetd', 'podman', 'skopeo', 'npm', 'python3-venv'].map((name) => ({ name, version: '1.0' })),
  },
  /**
   * The packages for the modules in `examples/roles` that set up a large service. Separate, so that only a run that selects
   * one of these modules waits for the 200 MB download. Built for the recipes root.
   */
  services: {
    fetched: [
      ...['haproxy', 'socat', 'mariadb-server', 'mariadb-backup', 'postfix', 'bsd-mailx'],
      ...['samba', 'samba-common-bin', 'samba-vfs-modules', 'smbclient', 'wireguard-tools', 'wireguard-go'],
      ...['docker.io', 'docker-registry', 'apt-transport-https', 'gnupg', 'python3-venv'],
    ],
    made: [],
  },
} satisfies Record<string, Contents>;
export type PoolName = keyof typeof contents;

/** Build version, which is part of the cache key. Increase it whenever the build changes. */
const recipe = 1;

const run = promisify(execFile);

export interface PoolPackage {
  name: string;
  version: string;
  path: string;
  /** The package's stanza in the index, without `Filename`, `Size`, and `SHA256`. */
  control: string;
}

// Uses a separate apt state with the installed packages of the test hosts, so that apt fetches missing dependencies.
const fetch = `
set -eu
mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$new/apt/sources.list"
apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$new/apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent -o Dir::State::lists="$new/apt/lists" \\
    -o Dir::Cache="$new/apt" -o Dir::Cache::archives="$new/apt/archives" -o Dir::State::status="$base/var/lib/dpkg/status" \\
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o Debug::NoLocking=1 "$@"
}
apt update
apt install --download-only --yes --no-install-recommends $fetched
mv "$new"/apt/archives/*.deb "$new"
rm -rf "$new/apt"
`;

// Builds in a temporary directory under a lock and renames it, so that no build uses the remains of a killed build.
const build = `
set -eu
if [ -d "$pool" ]; then exit 0; fi
new=$pool.building
rm -rf "$new"
mkdir -p "$new"
(${fetch})
"$node" "$program" "$new" "$name"
mv -T "$new" "$pool"
`;

/**
 * Returns the packages of a pool. Fetches and builds them on the first call.
 * @param base root for which the packages are intended
 */
export async function packagePool(base: string, name: PoolName = 'samples'): Promise<PoolPackage[]> {
  const { fetched, made }: Contents = contents[name];
  const key = createHash('sha256')
    .update(JSON.stringify([base, fetched, made, recipe]))
    .digest('hex');
  const pool = join(cacheFolder(), `packages-${key.slice(0, 12)}`);
  if (!existsSync(pool)) {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', pool, base, suite, mirror: debianMirror() };
    const more = { name, fetched: fetched.join(' '), node: process.execPath, program: import.meta.filename };
    try {
      await run('setpriv', buildAlone(pool, build), { env: { ...env, ...more } });
    } catch (error) {
      throw new Error(
        `cannot fetch or build the packages for the test hosts: ${(error as { stderr?: string }).stderr ?? error}`,
      );
    }
  }
  const index = JSON.parse(readFileSync(join(pool, 'index.json'), 'utf8')) as PoolPackage[];
  return index.map((entry) => ({ ...entry, path: join(pool, entry.path) }));
}

/** Builds packages in a folder, and writes an index of all packages in the folder. */
async function fill(pool: string, { made }: Contents): Promise<void> {
  for (const recipe of made) await pack(pool, recipe);
  await run('sh', ['-c', 'rm -rf -- "$1"/tree-*', 'sh', pool]);
  const index: PoolPackage[] = [];
  for (const path of readdirSync(pool).filter((name) => name.endsWith('.deb'))) {
    const { stdout } = await run('dpkg-deb', ['--field', join(pool, path)]);
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(stdout)?.[1] ?? '';
    index.push({ name: field('Package'), version: field('Version'), path, control: stdout.trimEnd() });
  }
  writeFileSync(join(pool, 'index.json'), JSON.stringify(index, null, 2));
}

async function pack(pool: string, recipe: PackageRecipe): Promise<void> {
  const { name, version, depends, files = {}, conffiles = [], postinst, prerm, postrm } = recipe;
  const tree = join(pool, `tree-${name}-${version}`);
  const write = (path: string, content: string, mode = 0o644) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content, { mode });
  };
  const fields = [
    `Package: ${name}\nVersion: ${version}\nArchitecture: all\nSection: misc\nPriority: optional`,
    'Maintainer: Tests <tests@example.com>',
    ...(depends === undefined ? [] : [`Depends: ${depends}`]),
    `Description: made for tests\n It does nothing of use.\n`,
  ];
  write('DEBIAN/control', fields.join('\n'));
  for (const [path, content] of Object.entries(files)) write(path, content);
  if (conffiles.length > 0) write('DEBIAN/conffiles', conffiles.map((path) => `${path}\n`).join(''));
  for (const [script, text] of Object.entries({ postinst, prerm, postrm }))
    if (text !== undefined) write(`DEBIAN/${script}`, `#!/bin/sh\nset -e\n${text}\n`, 0o755);
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, join(pool, `${name}_${version}_all.deb`)]);
}

if (import.meta.main) await fill(process.argv[2] as string, contents[process.argv[3] as PoolName]);
