import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Replica } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { built } from '../../packaging/built.ts';
import { documented } from '../documented.ts';
import { eventually } from '../eventually.ts';
import { replicasRoot } from './installed.ts';
import type { Machine } from './machine.ts';
import { test as base, noHosts } from './test.ts';
import { TestHosts } from './test-hosts.ts';

const reason = noHosts();
const page = 'docs/replicas.md';

/** The addresses on the page. One machine has PostgreSQL, NATS, and HAProxy. */
const addresses = {
  'muster-1': ['192.0.2.11'],
  'muster-2': ['192.0.2.12'],
  'muster-3': ['192.0.2.13'],
  servers: ['192.0.2.2', '192.0.2.3', '192.0.2.4'],
  'web-1': ['192.0.2.21'],
} as const;
const names = '127.0.0.1 localhost\n192.0.2.2 muster.example\n192.0.2.3 db.example\n192.0.2.4 nats.example\n';

// biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
const test = base.override('hosts', { scope: 'file' }, async ({}, { onCleanup }) => {
  const hosts = await TestHosts.open({ base: await replicasRoot() });
  onCleanup(() => hosts.end());
  return hosts;
});

const hello = `name: hello
supports: [{ platform: linux }]
resources:
  - id: file
    resource: { file-unix: { path: /srv/hello, content: "kept by muster\\n" } }
`;

/** Returns a code block of the page. @param content text that only this block of the language contains */
const block = (language: string, content = '', replacements: Readonly<Record<string, string>> = {}) =>
  documented(page, { language, content }, replacements);

/** Starts a machine with its addresses on the page. It can resolve the names on the page. */
async function start(hosts: TestHosts, name: keyof typeof addresses): Promise<Machine> {
  const machine = await hosts.start(name, {
    repository: false,
    files: { '/etc/hosts': `${names}127.0.1.1 ${name}\n` },
  });
  for (const address of addresses[name]) await machine.sh(`ip addr add ${address}/24 dev eth0`);
  // Answers the questions for the passphrase.
  await machine.sh(`echo 'Defaults env_keep += "MUSTER_SHARE_PASSPHRASE"' > /etc/sudoers.d/passphrase`);
  return machine;
}

/** Executes commands as a reader does, in the home directory. @returns their output */
const type = (machine: Machine, commands: string) =>
  machine.sh(`exec 2>&1; cd /root; export MUSTER_SHARE_PASSPHRASE='correct horse battery staple'\n${commands}`);

function copy(from: Machine, to: Machine, ...files: string[]): void {
  for (const file of files) copyFileSync(join(from.rootPath, 'root', file), join(to.rootPath, 'root', file));
}

async function append(machine: Machine, path: string, text: string): Promise<void> {
  await machine.run(['sh', '-c', `cat >> ${path}`], { input: text });
}

/** Sets up PostgreSQL, NATS, and HAProxy on one machine. */
async function setUpServers(servers: Machine): Promise<void> {
  await type(servers, block('sh', 'openssl'));
  await type(servers, block('sh', 'createdb'));
  await type(servers, block('sh', '/etc/nats'));
  await servers.sh(': > /etc/nats-server.conf');
  await append(servers, '/etc/nats-server.conf', block('nats'));
  await append(servers, '/etc/haproxy/haproxy.cfg', block('haproxy'));
  await servers.sh('systemctl restart nats-server; systemctl restart haproxy');
}

/** Installs the packages on a machine, and configures its replica. */
async function install(machine: Machine, servers: Machine): Promise<void> {
  const { debs } = await built();
  for (const path of [debs.muster, debs.orchestrator])
    copyFileSync(path, join(machine.rootPath, 'root', basename(path)));
  copy(servers, machine, 'ca.crt');
  await type(machine, block('sh', 'dpkg -i'));
  await append(machine, '/etc/muster/orchestrator.yml', block('yaml', 'replica:', { 'muster-1': machine.name }));
}

/** Runs `muster` as the operator on the first machine. @returns its parsed output */
const musterAt =
  (machine: Machine) =>
  async <T>(...words: string[]): Promise<T> =>
    JSON.parse(await machine.exec('muster', ...words, '--json')) as T;
type Muster = ReturnType<typeof musterAt>;

const expectReady = (muster: Muster, count: number) =>
  eventually(`${count} replicas are ready`, async () => {
    const listed = await muster<Replica[]>('replicas', 'list');
    return listed.filter(({ ready }) => ready).length === count ? listed : null;
  });

/** Expects an apply to restore a file that was removed by hand. */
async function expectApply(muster: Muster, web: Machine): Promise<void> {
  await web.sh('rm -f /srv/hello');
  await eventually('the agent is connected', async () =>
    (await muster<{ connected: boolean }[]>('agents', 'list')).some(({ connected }) => connected) ? true : null,
  );
  expect(await muster('apply', 'web-1', '-m', 'hello', '--yes')).toMatchObject({ status: 'succeeded' });
  expect(await web.sh('cat /srv/hello')).toBe('kept by muster\n');
}

/** Enrolls an agent through HAProxy, and approves it. */
async function enroll(muster: Muster, first: Machine, web: Machine): Promise<void> {
  const line = (await first.exec('muster', 'agents', 'enroll', '--no-approve')).trim();
  expect(await web.exec('sh', '-c', `${line} 2>&1`)).toContain('the agent is running and waits for approval');
  const [agent] = await muster<{ node_id: string }[]>('agents', 'list');
  await first.exec('muster', 'agents', 'approve', agent!.node_id, '--name', 'web-1');
}

describe.skipIf(reason !== null)(`replicas from packages${reason === null ? '' : ` (${reason})`}`, () => {
  test('the steps in docs/replicas.md set up three replicas, which lose one, lose NATS, and are restored', async ({
    hosts,
    onTestFailed,
  }) => {
    onTestFailed(() => console.error(hosts.report()));
    const [, [servers, web, ...replicas]] = await Promise.all([
      built(),
      Promise.all(
        (['servers', 'web-1', 'muster-1', 'muster-2', 'muster-3'] as const).map((name) => start(hosts, name)),
      ),
    ]);
    const [first, ...others] = replicas as [Machine, Machine, Machine];
    await setUpServers(servers!);
    for (const machine of replicas) await install(machine, servers!);
    const said = await type(first, block('sh', 'orchestrator init'));
    const fingerprint = /^Fingerprint of its certificate: (\S+)$/m.exec(said)![1]!;
    for (const machine of others) {
      copy(first, machine, 'keys.age');
      await type(machine, block('sh', 'orchestrator join'));
    }
    for (const { name } of replicas)
      await eventually(`${name} is ready`, () =>
        first.sh(`curl -ksf https://${addresses[name as 'muster-1'][0]}:4748/readyz`),
      );
    await eventually('HAProxy has a server', () => first.sh('curl -ksf https://muster.example:4748/readyz'));
    const [create, login, ...checks] = block('sh', 'muster login', { FINGERPRINT: fingerprint }).trim().split('\n');
    await type(first, `${create}\n${login}`);
    await eventually('muster doctor finds three replicas', async () =>
      (await type(first, checks.join('\n'))).includes('3 replicas, all ready and alike') ? true : null,
    );

    const muster = musterAt(first);
    await expectReady(muster, 3);
    await eventually('nothing is degraded', async () =>
      (await muster<{ status: string }>('status')).status === 'ok' ? true : null,
    );
    await enroll(muster, first, web!);
    await first.run(['sh', '-c', 'cat > /root/hello.yml'], { input: hello });
    await first.exec('muster', 'modules', 'upload', '/root/hello.yml');
    await expectApply(muster, web!);

    // The replica that has the agent is lost.
    const holder = (await muster<Replica[]>('replicas', 'list')).find(
      ({ connected_agents }) => connected_agents === 1,
    )!;
    const lost = replicas.find(({ name }) => name === holder.name)!;
    await lost.exec('systemctl', 'kill', '--signal=KILL', 'muster-orchestrator');
    await lost.exec('systemctl', 'stop', 'muster-orchestrator');
    await expectReady(muster, 2);
    await expectApply(muster, web!);
    await lost.exec('systemctl', 'start', 'muster-orchestrator');
    await expectReady(muster, 3);

    // NATS is lost.
    await servers!.exec('systemctl', 'stop', 'nats-server');
    await eventually('the status names the bus', async () => {
      // The command exits with 1 while the orchestrator is degraded.
      const { stdout } = await first.run(['muster', 'status', '--json']);
      return (JSON.parse(stdout) as { reasons: string[] }).reasons.includes('bus') ? true : null;
    });
    await expectApply(muster, web!);
    await servers!.exec('systemctl', 'start', 'nats-server');

    await type(first, block('sh', 'muster backup'));
    for (const machine of replicas) await machine.exec('systemctl', 'stop', 'muster-orchestrator');
    await type(first, block('sh', 'muster restore'));
    for (const machine of replicas) await machine.exec('systemctl', 'start', 'muster-orchestrator');
    await eventually('the operator signs in again', async () => {
      await first.exec('muster', 'login');
      return true;
    });
    await expectReady(muster, 3);
    await expectApply(muster, web!);
  });
});
