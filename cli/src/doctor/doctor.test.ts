import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { listReplicas, type Replica } from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../test/certificate.ts';
import { agent } from '../../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../test/orchestrator.ts';
import { makeHome, musterHere } from '../../test/process.ts';
import type { Target } from '../context/profile.ts';
import { collectReach } from './collect.ts';
import { type Finding, judgeDisk, judgePermissions } from './finding.ts';
import { judgeHere } from './here.ts';
import { judgeMachine, type MachineFacts } from './machine.ts';
import { type FleetFacts, judgeFleet, judgeReach, type ReachFacts } from './orchestrator.ts';

const now = 1_795_000_000;
const day = 86_400;
const bad = (findings: readonly Finding[]) =>
  findings.filter(({ verdict }) => verdict !== 'ok').map(({ check, verdict }) => `${check}: ${verdict}`);
/** Fails if a finding other than `ok` lacks a reason or a remedy. */
const expectAdvice = (findings: readonly Finding[]) => {
  for (const finding of findings) if (finding.verdict !== 'ok') expect(finding.why, finding.check).not.toBeNull();
};

const here = {
  uid: 1000,
  pathFacts: [],
  configuration: null,
  key: { path: '/k', publicKey: 'ab'.repeat(32), storage: 'plain' as const },
  variables: [],
};
const keyFacts = { path: '/k', what: 'your key', isDirectory: false, mode: 0o600, uid: 1000 };

describe('findings about this client', () => {
  test('reports no problem for valid files', () => {
    expect(bad(judgeHere({ ...here, pathFacts: [keyFacts, { ...keyFacts, mode: null }] }))).toEqual([]);
  });

  test.each([
    [
      'a key that others read',
      { ...here, pathFacts: [{ ...keyFacts, mode: 0o640 }] },
      'file_mode: problem',
      'chmod 600 /k',
    ],
    [
      'a directory that others enter',
      { ...here, pathFacts: [{ ...keyFacts, isDirectory: true, mode: 0o755 }] },
      'file_mode: problem',
      'chmod 700 /k',
    ],
    [
      'a file of another user',
      { ...here, pathFacts: [{ ...keyFacts, uid: 0 }] },
      'file_owner: problem',
      'chown 1000 /k',
    ],
    [
      'no key',
      { ...here, key: { path: '/k', message: 'there is none', remedy: 'muster operator init' } },
      'operator_key: problem',
      'muster operator init',
    ],
    [
      'profiles that cannot be read',
      { ...here, configuration: { message: 'no JSON', remedy: 'Mend it.' } },
      'configuration: problem',
      'Mend it.',
    ],
    [
      'a variable that switches trust off',
      { ...here, variables: ['NODE_TLS_REJECT_UNAUTHORIZED'] },
      'tls_variable: warning',
      'unset NODE_TLS_REJECT_UNAUTHORIZED',
    ],
  ])('reports %s, with a remedy', (_, facts, verdict, remedy) => {
    const findings = judgeHere(facts);
    expect(bad(findings)).toEqual([verdict]);
    expect(findings.find((each) => each.verdict !== 'ok')?.remedy).toBe(remedy);
    expectAdvice(findings);
  });

  test('reports nothing about a file that does not exist', () => {
    expect(judgePermissions('here', { ...keyFacts, mode: null }, 1000)).toBeNull();
  });

  test.each([
    [100 * 1024 ** 3, 50 * 1024 ** 3, 'ok'],
    [100 * 1024 ** 3, 1024 ** 3, 'warning'],
    [1024 ** 3, 400 * 1024 ** 2, 'warning'],
    [1024 ** 3, 10 * 1024 ** 2, 'problem'],
  ])('reports a disk with %i bytes, of which %i are free, as %s', (size, free, verdict) => {
    expect(judgeDisk('machine', { path: '/x', size, free }).verdict).toBe(verdict);
  });
});

const reached: ReachFacts = {
  url: 'https://o:4748',
  now,
  unreachable: null,
  certificate: { fingerprint: 'ab'.repeat(32), validFrom: now - day, validTo: now + 300 * day, vouched: false },
  expected: 'ab'.repeat(32),
  insecure: false,
  serverTime: now,
  status: { status: 'ok', version: '1.2.3', protocol_version: 3, reasons: [] },
  ready: 200,
  proxies: [],
  own: { version: '1.2.3', protocol: 3 },
};
const certificate = reached.certificate as NonNullable<ReachFacts['certificate']>;

describe('findings about the connection to the orchestrator', () => {
  test.each<[string, Partial<ReachFacts>, string[]]>([
    ['a healthy orchestrator', {}, []],
    ['no answer', { unreachable: { message: 'no', remedy: null } }, ['reachable: problem']],
    [
      'no answer, with a proxy',
      { unreachable: { message: 'no', remedy: null }, proxies: ['HTTPS_PROXY'] },
      ['reachable: problem', 'proxy: warning'],
    ],
    ['a proxy that does not matter', { proxies: ['HTTPS_PROXY'] }, []],
    ['another certificate', { expected: 'cd'.repeat(32) }, ['certificate: problem']],
    ['a certificate that is not trusted yet', { expected: null }, ['certificate: problem']],
    ['a certificate signed by an authority', { expected: null, certificate: { ...certificate, vouched: true } }, []],
    ['an unknown certificate that is not checked', { expected: null, insecure: true }, ['certificate: warning']],
    ['plain HTTP', { certificate: null, expected: null }, ['certificate: warning']],
    ['an expired certificate', { certificate: { ...certificate, validTo: now - 1 } }, ['certificate_expiry: problem']],
    [
      'a certificate that expires soon',
      { certificate: { ...certificate, validTo: now + day } },
      ['certificate_expiry: warning'],
    ],
    [
      'a certificate that is not valid yet',
      { certificate: { ...certificate, validFrom: now + day } },
      ['certificate_expiry: problem'],
    ],
    ['clocks that differ a little', { serverTime: now - 5 }, []],
    ['clocks that differ', { serverTime: now - 60 }, ['clock: warning']],
    ['clocks that differ much', { serverTime: now + 3600 }, ['clock: problem']],
    ['an orchestrator that is stopping', { ready: 503 }, ['ready: problem']],
    [
      'a degraded orchestrator',
      { status: { ...reached.status!, status: 'degraded', reasons: ['disk', 'database'] } },
      ['health: problem', 'health: problem'],
    ],
    [
      'unknown reasons',
      { status: { ...reached.status!, status: 'degraded', reasons: ['constructor', 'toString'] } },
      ['health: problem', 'health: problem'],
    ],
    ['another version', { own: { version: '1.2.4', protocol: 3 } }, ['version: warning']],
  ])('reports the findings for %s', (_, facts, expected) => {
    const findings = judgeReach({ ...reached, ...facts });
    expect(bad(findings)).toEqual(expected);
    expectAdvice(findings);
  });
});

const fleet: FleetFacts = {
  now,
  version: '0.1.0',
  agents: [agent({})],
  secrets: [],
  disk: { size_bytes: 1e12, free_bytes: 5e11, reserve_bytes: 1e8, low: false },
  secretsReadable: true,
  database: { kind: 'sqlite', writable: true },
  unreadCritical: 0,
  signInsWithoutServer: { count: 0, usernames: [] },
  channel: { address: 'o:4747', error: null },
  audit: null,
  replicas: [],
  bus: null,
};
const [replica] = listReplicas.example.answer as [Replica];
const replicas = (...changes: Partial<Replica>[]) =>
  changes.map((change, index) => ({ ...replica, name: `muster-${index}`, ...change }));
const secret = (name: string, days: number) =>
  ({ name, expires_at: new Date((now + days * day) * 1000).toISOString() }) as FleetFacts['secrets'][number];

describe('findings about the fleet', () => {
  test.each<[string, Partial<FleetFacts>, string[]]>([
    ['a healthy fleet', {}, []],
    ['a database that refuses writes', { database: { kind: 'postgres', writable: false } }, ['database: problem']],
    ['a missing encryption key for secrets', { secretsReadable: false }, ['secrets_key: problem']],
    ['a nearly full disk', { disk: { ...fleet.disk!, low: true } }, ['disk: problem']],
    ['a closed port for agents', { channel: { address: 'o:4747', error: 'ECONNREFUSED' } }, ['channel_port: problem']],
    ['a pending agent', { agents: [agent({ status: 'pending', name: null })] }, ['agents_pending: warning']],
    ['a lost agent', { agents: [agent({ connected: false })] }, ['agents_lost: warning']],
    ['an agent of an older version', { agents: [agent({ agent_version: '0.0.9' })] }, ['agents_version: warning']],
    ['a rejected agent', { agents: [agent({ status: 'rejected', connected: false })] }, []],
    [
      'secrets expire',
      { secrets: [secret('a', -1), secret('b', 3), secret('c', 90)] },
      ['secrets_expired: problem', 'secrets_expiring: warning'],
    ],
    ['unread critical notifications', { unreadCritical: 2 }, ['notifications: warning']],
    [
      'sign-ins that are not bound to a server',
      { signInsWithoutServer: { count: 3, usernames: ['ada', 'ci'] } },
      ['sign_ins_unbound: warning'],
    ],
    ['equal replicas', { replicas: replicas({}, {}, {}), bus: { connected: true, unheard: [] } }, []],
    [
      'one replica of two that is not ready',
      { replicas: replicas({}, { ready: false }) },
      ['replicas_ready: problem', 'replicas_spare: warning'],
    ],
    ['a late replica of three', { replicas: replicas({}, {}, { heartbeat_age_secs: 6 }) }, ['replicas_ready: problem']],
    [
      'a drained replica of three',
      { replicas: replicas({}, {}, { draining: true, ready: false }) },
      ['replicas_drained: warning'],
    ],
    ['a single replica', { replicas: replicas({}) }, ['replicas_spare: warning']],
    [
      'replicas of two releases, whose configurations cannot be compared',
      { replicas: replicas({}, { version: '0.2.0', config_digest: 'other' }) },
      ['replicas_version: warning'],
    ],
    [
      'replicas with two configurations',
      { replicas: replicas({}, { config_digest: 'other' }, { config_digest: null }) },
      ['replicas_configuration: warning'],
    ],
    [
      'a replica without a connection to NATS',
      { replicas: replicas({}, {}), bus: { connected: false, unheard: [] } },
      ['replicas_bus: warning'],
    ],
    [
      'a replica that does not hear another one',
      { replicas: replicas({}, {}), bus: { connected: true, unheard: ['muster-1'] } },
      ['replicas_bus: warning'],
    ],
    ['a broken audit chain', { audit: { ok: false, verified: 3, fault: 'x' } }, ['audit_chain: problem']],
    ['an intact audit chain', { audit: { ok: true, verified: 3, fault: null } }, []],
  ])('reports the findings for %s', (_, facts, expected) => {
    const findings = judgeFleet({ ...fleet, ...facts });
    expect(bad(findings)).toEqual(expected);
    expectAdvice(findings);
  });
});

const machine: MachineFacts = {
  program: 'agent',
  directory: '/var/lib/muster-agent',
  uid: 0,
  readable: true,
  closed: false,
  owner: 0,
  pathFacts: [],
  config: null,
  unit: { name: 'muster-agent', state: 'active', enabled: 'enabled' },
  disk: null,
  belongs: { addresses: [{ address: 'o:4747', error: null }], key: 'ab'.repeat(32) },
  damaged: false,
  orchestratorKey: 'ab'.repeat(32),
  ports: [],
};
const unit = machine.unit as NonNullable<MachineFacts['unit']>;
const belongs = machine.belongs as NonNullable<MachineFacts['belongs']>;
const port = { port: 4748, what: 'of the API', listening: true };

describe('findings about this machine', () => {
  test.each<[string, Partial<MachineFacts>, string[]]>([
    ['a healthy program', {}, []],
    ['a program that is not running', { unit: { ...unit, state: 'failed' } }, ['unit: problem']],
    ['a unit that is not enabled', { unit: { ...unit, enabled: 'disabled' } }, ['unit: warning']],
    ['a missing data directory', { owner: null }, ['data_directory: problem']],
    [
      'a data directory that cannot be searched for',
      { owner: null, closed: true, readable: false },
      ['data_directory: warning'],
    ],
    ['a data directory without access', { readable: false }, ['data_directory: warning']],
    [
      'an orchestrator that does not answer the agent',
      { belongs: { ...belongs, addresses: [{ address: 'o:4747', error: 'ECONNREFUSED' }] } },
      ['agent_orchestrator: problem'],
    ],
    [
      'an orchestrator that answers at one of two addresses',
      {
        belongs: {
          ...belongs,
          addresses: [
            { address: 'o:4747', error: 'ECONNREFUSED' },
            { address: 'p:4747', error: null },
          ],
        },
      },
      ['agent_orchestrator: warning'],
    ],
    ['a damaged orchestrator.json', { belongs: null, damaged: true }, ['agent_orchestrator: problem']],
    ['an agent that never connected', { belongs: { ...belongs, key: null } }, ['agent_pin: warning']],
    ['an agent of another orchestrator', { orchestratorKey: 'cd'.repeat(32) }, ['agent_pin: warning']],
    ['a private configuration', { config: { path: '/etc/o.yml', mode: 0o640 } }, []],
    [
      'a configuration that all users can read',
      { config: { path: '/etc/o.yml', mode: 0o644 } },
      ['config_mode: problem'],
    ],
    [
      'a configuration that a group can change',
      { config: { path: '/etc/o.yml', mode: 0o660 } },
      ['config_mode: problem'],
    ],
    ['an open port', { ports: [port] }, []],
    ['a closed port', { ports: [{ ...port, listening: false }] }, ['port: warning']],
    [
      'a port of another program',
      { unit: { ...unit, state: 'failed' }, ports: [port] },
      ['unit: problem', 'port: problem'],
    ],
  ])('reports the findings for %s', (_, facts, expected) => {
    const findings = judgeMachine({ ...machine, ...facts });
    expect(bad(findings)).toEqual(expected);
    expectAdvice(findings);
  });
});

describe('muster doctor', () => {
  let home: Awaited<ReturnType<typeof makeHome>>;
  let server: Standing;
  let env: Record<string, string>;
  const answers: Record<string, (seen: Seen) => Answer | undefined> = {};

  beforeAll(async () => {
    const tls = await makeCertificate();
    server = await standIn({ tls, answers: new Proxy({}, { get: (_, id: string) => answers[id] }) });
    home = await makeHome();
    env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: tls.fingerprint };
    await musterHere(['operator', 'init'], env);
  });
  afterAll(async () => {
    await server.close();
    await home.remove();
  });

  const look = async (variables: Record<string, string>, ...args: string[]) => {
    const ran = await musterHere(['doctor', '--json', ...args], variables);
    return { exit: ran.exit, findings: JSON.parse(ran.stdout).findings as Finding[] };
  };

  test('checks client and orchestrator, and sends nothing to an untrusted server', async () => {
    answers.listAgents = () => ({ body: [agent({ connected: false })] });
    answers.getSettings = ({ route }) => ({
      body: { ...(route.example.answer as object), settings: { agent_port: 1, advertised_host: '127.0.0.1' } },
    });
    const { findings } = await look(env);
    expect(bad(findings)).toEqual(expect.arrayContaining(['agents_lost: warning', 'channel_port: problem']));
    expect(findings).toContainEqual(expect.objectContaining({ check: 'database', verdict: 'ok' }));
    delete answers.listAgents;
    delete answers.getSettings;
    server.seen.length = 0;
    const stranger = await look({ ...env, MUSTER_FINGERPRINT: 'ab'.repeat(32) });
    expect(stranger.exit).toBe(1);
    expect(bad(stranger.findings)).toContain('certificate: problem');
    expect(server.seen.map(({ route }) => route.id)).toEqual(['getStatus']);
  });

  test('reports an orchestrator that does not respond, and an invalid address', async () => {
    const away = await look({ ...env, MUSTER_URL: 'https://127.0.0.1:1', HTTPS_PROXY: 'http://proxy' });
    expect(away.exit).toBe(1);
    expect(bad(away.findings)).toEqual(expect.arrayContaining(['reachable: problem', 'proxy: warning']));
    const wrong = await look({ ...env, MUSTER_URL: 'ftp://x' });
    expect(bad(wrong.findings)).toContain('configuration: problem');
    const locked = await look({ ...env, MUSTER_KEY_FILE: '/nonexistent' });
    expect(bad(locked.findings)).toEqual(expect.arrayContaining(['operator_key: problem', 'signed_in: problem']));
  });

  test('checks the agent on this machine, and prints readable findings', async () => {
    const directory = join(home.path, 'agent');
    await mkdir(directory, { mode: 0o700 });
    const listening = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => listening.once('listening', resolve));
    const { port } = listening.address() as { port: number };
    const addresses = ['[::1]:9', 7, 'x', `127.0.0.1:${port}`];
    const pinned = { host: '127.0.0.1', port, orchestrator_key: 'ab'.repeat(32), token: null, addresses };
    await writeFile(join(directory, 'orchestrator.json'), JSON.stringify(pinned));
    await chmod(join(directory, 'orchestrator.json'), 0o644);
    const ran = await musterHere(['doctor', '--agent', '--data-dir', directory], env);
    listening.close();
    expect(ran.exit).toBe(1);
    expect(ran.stdout).toContain(`problem  ${directory}/orchestrator.json is 0644: other users have access\n`);
    expect(ran.stdout).toContain(`hint: chmod 600 ${directory}/orchestrator.json\n`);
    expect(ran.stdout.split(`ok       its orchestrator at 127.0.0.1:${port} answers\n`)).toHaveLength(2);
    expect(ran.stdout).toContain('warning  its orchestrator at [::1]:9 does not answer: ');
    expect(ran.stdout).toContain('the agent’s pinned key matches this orchestrator');
    expect((await musterHere(['doctor', '--data-dir', directory], env)).exit).toBe(2);
  });

  test.each(['{"host": "127', 'null', '{}', '{"host": "127.0.0.1", "port": 99999}'])(
    'reports an orchestrator.json with the content %j',
    async (text) => {
      const directory = join(home.path, 'damaged');
      await mkdir(directory, { mode: 0o700, recursive: true });
      await writeFile(join(directory, 'orchestrator.json'), text, { mode: 0o600 });
      const { findings } = await look(env, '--agent', '--data-dir', directory);
      expect(bad(findings)).toContain('agent_orchestrator: problem');
    },
  );

  test('sends no admin requests as an operator, because refusals are recorded in the audit log', async () => {
    answers.getOperator = ({ route }) => ({ body: { ...(route.example.answer as object), role: 'operator' } });
    server.seen.length = 0;
    const { exit, findings } = await look(env);
    delete answers.getOperator;
    expect(exit).toBe(0);
    expect(findings).toContainEqual(expect.objectContaining({ check: 'database', verdict: 'ok' }));
    expect(server.seen.map(({ route }) => route.id)).not.toContain('getSettings');
  });

  test('reports an invalid agent port as a problem', async () => {
    answers.getSettings = ({ route }) => ({
      body: { ...(route.example.answer as object), settings: { agent_port: 99_999, advertised_host: '127.0.0.1' } },
    });
    const { findings } = await look(env);
    delete answers.getSettings;
    expect(bad(findings)).toContain('channel_port: problem');
  });

  test('reports endless, truncated, and oversized responses', async () => {
    let drip: (response: ServerResponse) => void = () => {};
    const slowServer = createPlainServer((_, response) => drip(response)).listen(0, '127.0.0.1');
    await new Promise((resolve) => slowServer.once('listening', resolve));
    const target = { url: `http://127.0.0.1:${(slowServer.address() as AddressInfo).port}` } as Target;
    const what = async (behaviour: typeof drip) => {
      drip = behaviour;
      const { facts } = await collectReach({ now: () => now, env: {} }, target, reached.own, 300);
      return facts.unreachable?.message;
    };
    let dripping: NodeJS.Timeout | undefined;
    expect(await what((response) => (dripping = setInterval(() => response.write(' '), 20)))).toContain(
      'within the time limit',
    );
    clearInterval(dripping);
    expect(await what((response) => response.writeHead(200).write('{', () => void response.destroy()))).toContain(
      'no orchestrator',
    );
    expect(await what((response) => response.end('x'.repeat(100_000)))).toContain('too long');
    slowServer.closeAllConnections();
    slowServer.close();
  });
});

test('suggests a remedy for each finding that is not ok, even if the cause has no specific remedy', () => {
  const findings = [
    ...judgeHere({ ...here, configuration: { message: 'no', remedy: null } }),
    ...judgeHere({ ...here, key: { path: null, message: 'no', remedy: null } }),
    ...judgeReach({ ...reached, unreachable: { message: 'no', remedy: null } }),
    ...judgeMachine({ ...machine, belongs: { addresses: [{ address: 'o:4747', error: null }], key: null } }),
  ].filter(({ verdict }) => verdict !== 'ok');
  expect(findings.map(({ check }) => check)).toEqual(['configuration', 'operator_key', 'reachable', 'agent_pin']);
  for (const { remedy } of findings) expect(remedy).toMatch(/: |--url/);
});
