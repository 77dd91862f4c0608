import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, createSecret, type Operation, uploadModule } from '@muster/protocol/http';
import { describe, expect, test as plainTest } from 'vitest';
import { musterHere } from '../../cli/test/process.ts';
import { blocksOf } from '../../tools/docs/markdown.ts';
import { root } from '../../tools/suite/cli.ts';
import { ended } from '../eventually.ts';
import type { Orchestrator, Stage } from '../harness.ts';
import { operatorEnvironment } from '../person.ts';
import { HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import { newCertificate } from './documentation/certificate.ts';
import { exampleHash } from './documentation/documented-module.ts';
import { expectPlan } from './expect-plan.ts';
import type { Machine } from './machine.ts';
import { buildDeb, debs } from './registries/package-files.ts';
import { Downloads } from './sites/downloads.ts';
import { databasesRoot, mariadbUp, postgresqlUp } from './subjects/databases.ts';
import { test as base, noHosts } from './test.ts';
import { TestHosts } from './test-hosts.ts';

/** The modules with idioms in docs/coming-from.md, which one machine applies together. */

const reason = noHosts();

/** The machine has the servers that the database modules manage. */
// biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
const test = base.override('hosts', { scope: 'file' }, async ({}, { onCleanup }) => {
  const hosts = await TestHosts.open({ base: await databasesRoot() });
  onCleanup(() => hosts.end());
  return hosts;
});

/** Sources of the modules on the page, by name. */
const modules = new Map(
  blocksOf(readFileSync(join(root, 'docs/coming-from.md'), 'utf8')).flatMap(({ source }) => {
    const name = /^name: (.*)$/m.exec(source)?.[1];
    return name === undefined ? [] : [[name, source] as const];
  }),
);
function sourceOf(name: string): string {
  const source = modules.get(name);
  if (source === undefined) throw new Error(`docs/coming-from.md has no module ${name}`);
  return source;
}
/** The module with files, which is a folder. */
const website = { name: 'idiom-website', folder: join(root, 'docs/idioms/website') };

/** Modules that another test applies, on a machine with the program that they need. */
const elsewhere: Readonly<Record<string, string>> = {
  'idiom-packages-dnf': 'e2e/package-dnf.test.ts',
  'idiom-packages-zypper': 'e2e/package-zypper.test.ts',
  'idiom-packages-pacman': 'e2e/package-pacman.test.ts',
  'idiom-ufw': 'e2e/firewalls.test.ts',
  'idiom-firewalld': 'e2e/firewalls.test.ts',
  'idiom-languages': 'e2e/language-packages.test.ts',
  'idiom-apis': 'e2e/http-object.test.ts',
  'idiom-containers': 'e2e/containers-docker.test.ts',
};
/** Modules that are only planned, with the reason. */
const onlyPlanned: Readonly<Record<string, string>> = {
  'idiom-acme': 'the contract tests of certificate-acme have an ACME server, which no test host has',
  'idiom-kernel': 'test hosts share the kernel and the swap of the machine that runs the tests',
  'idiom-selinux': 'the kernel has no SELinux; e2e/selinux.test.ts applies the kinds with other fields, to a stand-in',
};

/** A script that may provide what a planned module needs. */
const programs = `name: programs
supports: [{ platform: linux }]
resources:
  - { id: programs, resource: { script: { program: sh, apply: "true" } } }
`;

/** Ids of resources that find the machine as declared: installed packages, and a reboot that nothing needs. */
const unchanged = ['at-least', 'kernel', 'libcap', 'mariadb', 'newest', 'nftables', 'postgresql', 'series'];

/** Paths that the removal does not restore: content that a module removes permanently, and the data of the database servers. */
const notRestored: readonly RegExp[] = [
  /^\/home\/mallory(\/|$)/,
  /^\/opt\/app-1\.0\/bin(\/|$)/,
  /^\/var\/lib\/(mysql|postgresql)\//,
];

/** Shell text that prints what the modules change outside of files. The database `test` is removed permanently. */
const state = `hostname; sysctl -n net.ipv4.conf.all.accept_redirects
findmnt --noheadings /mnt || true
nft list tables; apt-mark showhold
systemctl list-units --plain --no-legend 'heartbeat*' 'tidy*' 'beats*'
mariadb --skip-column-names --execute 'SELECT User, Host, plugin FROM mysql.user ORDER BY 1, 2; SHOW DATABASES' | grep -vx test
runuser -u postgres -- psql -qAtX -c 'SELECT rolname FROM pg_roles ORDER BY 1' -c 'SELECT datname FROM pg_database ORDER BY 1'
`;

/** Path of a git repository on the machine. */
const gitRepository = '/var/cache/work.git';

/** Prepares what the modules expect of a machine. */
const prepared = `${postgresqlUp}${mariadbUp}
echo 127.0.0.1 localhost > /etc/hosts
mkdir -p /etc/ssh /etc/cloud /srv/shared/notes /opt/app-1.0/bin /srv/keys /srv/sites
apt-get -qq install telnetd > /dev/null
useradd --create-home mallory
mariadb --execute "CREATE DATABASE test; CREATE USER ''@localhost"
echo '<p>' > /srv/shared/notes/index.html
echo key > /srv/keys/shop.key
echo old > /etc/old.conf
echo old > /opt/app-1.0/bin/app
echo other > /srv/sites/other.conf
git init --quiet ${gitRepository}
cd ${gitRepository}
git -c user.name=a -c user.email=a@example.com commit --quiet --allow-empty --message one
git tag v1.4.2
`;

/** Replaces texts in a module. Each must occur. */
function replaced(source: string, texts: Readonly<Record<string, string>>): string {
  let result = source;
  for (const [before, after] of Object.entries(texts)) {
    expect(result).toContain(before);
    result = result.replaceAll(before, after);
  }
  return result;
}

const exampleKey = String.raw`"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ…\n-----END PGP PUBLIC KEY BLOCK-----\n"`;
const exampleDownloads = 'https://downloads.example.com';

/** Returns the modules to apply, with the addresses of the test. */
async function applicable(machine: Machine, source: AptRepository, downloads: Downloads): Promise<Map<string, string>> {
  await machine.sh(`${buildDeb('exporter', '1.4.2')}
mkdir -p /var/cache/app-1.4.2
echo 1.4.2 > /var/cache/app-1.4.2/version
tar -C /var/cache -czf ${debs}/app-1.4.2.tar.gz app-1.4.2`);
  const offer = (name: string): string => downloads.offer(name, readFileSync(join(machine.rootPath, debs, name)));
  const hashes = { deb: offer('exporter_1.4.2.deb'), archive: offer('app-1.4.2.tar.gz') };
  // The hash on the page is that of this content.
  downloads.offer('tool-1.4.2', Buffer.from('foo'));
  await machine.sh(`rm -r ${debs}`);
  const texts: Record<string, Record<string, string>> = {
    'idiom-packages': {
      'https://packages.example.com/debian': source.url,
      [exampleKey]: JSON.stringify(source.publicKey),
      [exampleDownloads]: downloads.url,
      [exampleHash]: hashes.deb,
    },
    'idiom-servers': {
      [`app-1.4.2.tar.gz\n        sha256: ${exampleHash}`]: `app-1.4.2.tar.gz\n        sha256: ${hashes.archive}`,
      [exampleDownloads]: downloads.url,
      'https://git.example.com/work.git': gitRepository,
    },
  };
  return new Map(
    [...modules]
      .filter(([name]) => !Object.hasOwn({ ...elsewhere, ...onlyPlanned }, name))
      .map(([name, content]) => [name, replaced(content, texts[name] ?? {})]),
  );
}

async function storeSecrets(machine: Machine, orchestrator: Orchestrator): Promise<void> {
  const secrets = {
    ...Object.fromEntries(['shop', 'root', 'blog'].map((name) => [`${name}_password`, 'documentation'] as const)),
    ...{ ben_hash: '$6$documentation$abcdefgh', eab_hmac_key: 'ZG9jdW1lbnRhdGlvbmRvY3VtZW50YXRpb24' },
    shop_key: await machine.sh(`${newCertificate}; cat /root/shop.key`),
    shop_certificate: await machine.sh('cat /root/shop.pem; rm /root/shop.pem /root/shop.key'),
  };
  for (const [name, value] of Object.entries(secrets)) await orchestrator.call(createSecret, { body: { name, value } });
}

async function uploadFolder(stage: Stage, orchestrator: Orchestrator, folder: string): Promise<void> {
  const all = Object.entries(stage.environment(operatorEnvironment(stage, orchestrator)));
  const env = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
  const { exit, stderr } = await musterHere(['modules', 'upload', folder], env);
  expect(exit, stderr).toBe(0);
}

/** Returns the ids and messages of the resources that have none of the statuses. */
const othersThan = ({ resources }: Operation, ...statuses: string[]): string[] =>
  resources
    .filter(({ status }) => !statuses.includes(status))
    .map(({ module, id, status, message }) => `${module}:${id} ${status} ${message ?? ''}`);

plainTest('the tests that apply the other modules name them', () => {
  for (const [name, file] of Object.entries(elsewhere)) {
    expect(sourceOf(name)).toContain('resources:');
    expect(readFileSync(join(root, file), 'utf8')).toContain(`'${name}'`);
  }
});

describe.skipIf(reason !== null)(`the idioms${reason === null ? '' : ` (${reason})`}`, () => {
  test('a machine applies the modules of docs/coming-from.md twice, removes them, and plans those that it cannot apply', async ({
    hosts,
    stage,
  }) => {
    const [machine, orchestrator, repository, source, downloads] = await Promise.all([
      hosts.start('idioms'),
      stage.orchestrator(),
      AptRepository.open(hosts, 'idioms'),
      AptRepository.open(hosts, 'idioms'),
      Downloads.open(hosts.bridge.address),
    ]);
    await repository.use(machine);
    await machine.sh(prepared);
    const { nodeId: node_id } = await HostAgent.install(machine, orchestrator, hosts.bridge.address);
    const upload = (name: string, content: string) => orchestrator.call(uploadModule, { body: { name, content } });
    const apply = async (...names: string[]): Promise<Operation> => {
      const { operation_id } = await orchestrator.call(applyAgent, { params: { node_id }, body: { modules: names } });
      return await ended(orchestrator.call, operation_id);
    };

    await storeSecrets(machine, orchestrator);
    const applied = await applicable(machine, source, downloads);
    for (const [name, content] of applied) await upload(name, content);
    await uploadFolder(stage, orchestrator, website.folder);
    const names = [...applied.keys(), website.name];
    const before = { files: machine.changes(), state: await machine.sh(state) };

    await expectPlan(orchestrator, node_id, ...names);
    const first = await apply(...names);
    expect(othersThan(first, 'changed', 'unchanged')).toEqual([
      expect.stringMatching(/^idiom-conditions:unless-it-works skipped /),
    ]);
    const asDeclared = first.resources.filter(({ status }) => status === 'unchanged').map(({ id }) => id);
    expect(asDeclared.sort()).toEqual(unchanged);
    expect(first).toMatchObject({ status: 'succeeded', error: null });
    expect(await machine.sh(state)).not.toBe(before.state);
    const old = 'cat /etc/old.conf 2> /dev/null || true';
    expect(await machine.sh(old)).toBe('');
    const second = await apply(...names);
    expect(othersThan(second, 'unchanged', 'skipped')).toEqual([]);
    expect(second).toMatchObject({ status: 'succeeded', error: null });

    const removed = await apply();
    expect(removed).toMatchObject({ status: 'succeeded', error: null });
    expect(await machine.sh(old)).toBe('old\n');
    expect(await machine.sh(state)).toBe(before.state);
    const after = machine.changes();
    const paths = [...new Set([...Object.keys(before.files), ...Object.keys(after)])];
    const left = paths.filter((path) => after[path] !== before.files[path]);
    expect(left.filter((path) => !notRestored.some((pattern) => pattern.test(path)))).toEqual([]);

    await upload('programs', programs);
    for (const name of Object.keys(onlyPlanned)) {
      await upload(name, sourceOf(name).replace('family: redhat', 'family: debian'));
      await expectPlan(orchestrator, node_id, 'programs', name);
    }
    await Promise.all([repository, source, downloads].map((server) => server.end()));
  });
});
