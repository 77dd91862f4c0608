import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, createSecret, uploadModule } from '@muster/protocol/http';
import { executableKinds } from '@muster/protocol/module';
import { describe, expect } from 'vitest';
import { blocksOf } from '../../tools/docs/markdown.ts';
import { root } from '../../tools/suite/cli.ts';
import { HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import { newCertificate } from './documentation/certificate.ts';
import { expectPlan } from './expect-plan.ts';
import { httpApiState, httpApiUp } from './http-api/subjects.ts';
import { databasesRoot, mariadbUp, postgresqlUp } from './subjects/databases.ts';
import { test as base, noHosts } from './test.ts';
import { TestHosts } from './test-hosts.ts';

const reason = noHosts();

/** The machine has the servers that the database modules manage. */
// biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
const test = base.override('hosts', { scope: 'file' }, async ({}, { onCleanup }) => {
  const hosts = await TestHosts.open({ base: await databasesRoot() });
  onCleanup(() => hosts.end());
  return hosts;
});

const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const yamlOf = (page: string): string[] =>
  blocksOf(read(page)).flatMap(({ language, source }) => (language === 'yaml' ? [source] : []));
const nameOf = (source: string): string => /^name: (.*)$/m.exec(source)?.[1] as string;

/** Kinds of resources that a test host without a network, git, npm, pip, Podman, and SELinux does not support. */
const elsewhereKinds = [
  ...[
    'package-dnf',
    'dnf-module',
    'package-zypper',
    'package-pacman',
    'service-openrc',
    'git',
    'package-npm',
    'package-pip',
    'container',
    'compose',
  ],
  ...['selinux-mode', 'selinux-boolean', 'selinux-port', 'selinux-context'],
];
/**
 * Kinds whose example is also applied and removed. The `kernel-module` example is only planned, because all test hosts
 * share the kernel of the machine that runs the tests.
 */
const appliedKinds = ['mount-unix', 'locale', 'http-object'];
/**
 * Text in modules that need one of the unsupported kinds, or a program that the test host lacks. `e2e/acl.test.ts`
 * applies ACLs.
 */
const elsewhere = [...elsewhereKinds.map((kind) => `${kind}:`), 'validate: sshd', ' acl: ['];

/** The modules that an example in docs/modules.md requires. */
const required = [
  `name: nginx
supports: [{ platform: linux }]
parameters:
  workers: { type: number }
resources:
  - id: service
    resource: { service-systemd: { name: nginx, exec_start: "/bin/sleep \${{ param.workers }}", running: true } }
`,
  `name: base
supports: [{ platform: linux }]
resources:
  - id: notes
    resource: { file-unix: { path: /srv/notes, content: "" } }
`,
];

/** Returns a module with the examples in docs/module-kinds.md for kinds that a test host supports. */
function kindExamples(name: string, selected?: readonly string[]): string {
  const shown = yamlOf('docs/module-kinds.md').map((source) => ({
    source: source.trimEnd(),
    kind: /^ {4}([a-z-]+):$/m.exec(source)?.[1] as string,
  }));
  const here = shown.filter(({ kind }) => executableKinds.has(kind as never) && !elsewhereKinds.includes(kind));
  expect(here.length).toBe(executableKinds.size - elsewhereKinds.length);
  const resources = here
    .filter(({ kind }) => selected?.includes(kind) ?? true)
    .map(({ source, kind }) => source.replace('id: example', `id: ${kind}`));
  return `name: ${name}\nsupports: [{ platform: linux }]\nresources:\n${resources.join('\n')}\n`;
}

describe.skipIf(reason !== null)(`the documentation${reason === null ? '' : ` (${reason})`}`, () => {
  test('a real machine applies and removes all example modules, and plans all modules in the documentation', async ({
    hosts,
    stage,
  }) => {
    const [machine, orchestrator, repository] = await Promise.all([
      hosts.start('docs'),
      stage.orchestrator(),
      AptRepository.open(hosts),
    ]);
    await repository.use(machine);
    // debootstrap does not create this file, but Debian's installer does.
    await machine.sh('echo 127.0.0.1 localhost > /etc/hosts');
    await machine.sh(postgresqlUp + mariadbUp + httpApiUp);
    const { nodeId: node_id } = await HostAgent.install(machine, orchestrator, hosts.bridge.address);
    const params = { node_id };
    const upload = async (content: string): Promise<string> => {
      const name = nameOf(content);
      await orchestrator.call(uploadModule, { body: { name, content } });
      return name;
    };
    const apply = (...modules: string[]) => orchestrator.call(applyAgent, { params, body: { modules } });

    const examples = readdirSync(join(root, 'examples'))
      .filter((file) => file.endsWith('.yml'))
      .map((file) => read(`examples/${file}`));
    const names: string[] = [];
    for (const content of [...examples, kindExamples('applied-kinds', appliedKinds)]) names.push(await upload(content));
    const mounted = 'findmnt --noheadings --output FSTYPE,OPTIONS /mnt || true; cat /etc/fstab 2> /dev/null || true';
    const before = await machine.sh(mounted);
    expect(await apply(...names)).toMatchObject({ status: 'succeeded', error: null });
    expect(await machine.sh('find /tmp/muster-example -type f | wc -l')).toBe('22\n');
    expect(await machine.sh(mounted)).toMatch(/^tmpfs .*nosuid,nodev.*size=65536k/);
    expect(await machine.sh('locale -a; cat /etc/default/locale')).toMatch(/^de_DE\.utf8\n(.*\n)*LANG=de_DE\.UTF-8$/m);
    expect(await machine.sh(httpApiState)).toContain('"ada":{"name":"ada","tags":["monitoring"],"password":"example"}');
    expect(await apply(...names)).toMatchObject({ status: 'succeeded', summary: { changed: 0 } });
    expect(await apply()).toMatchObject({ status: 'succeeded' });
    expect(await machine.sh('ls -d /tmp/muster-example 2> /dev/null || true')).toBe('');
    expect(await machine.sh(mounted)).toBe(before);
    expect(await machine.sh(httpApiState)).toContain('"users":{}');

    const modules = yamlOf('docs/modules.md').filter(
      (source) => /^name: /m.test(source) && !elsewhere.some((text) => source.includes(text)),
    );
    expect(modules.length).toBeGreaterThan(5);
    for (const content of required) await upload(content);
    const secrets = {
      db_password: 'documentation',
      shop_password: 'documentation',
      ann_password: 'documentation',
      grafana_admin: 'documentation',
      metrics_password: 'documentation',
      deploy_hash: '$6$documentation$abcdefgh',
      shop_key: await machine.sh(`${newCertificate}; cat /root/shop.key`),
      shop_certificate: await machine.sh('cat /root/shop.pem'),
    };
    for (const [name, value] of Object.entries(secrets))
      await orchestrator.call(createSecret, { body: { name, value } });
    for (const content of [...modules, kindExamples('kinds')]) {
      const name = await upload(content);
      await expectPlan(orchestrator, node_id, name);
    }
    await repository.end();
  });
});
