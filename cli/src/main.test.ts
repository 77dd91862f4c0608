import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { routes as allRoutes, type Route, type Run } from '@muster/protocol/http';
import stringWidth from 'string-width';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeCertificate } from '../test/certificate.ts';
import { agent, drift, operation, result, variety } from '../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../test/orchestrator.ts';
import { makeHome, musterHere as run, muster as spawned } from '../test/process.ts';
import { formerNouns } from './aliases.ts';
import type { Prompter } from './keys/prompt.ts';
import { loadShapes } from './shapes/index.ts';
import { showFingerprint } from './transport/trust.ts';

// Runs the whole program in this process. The server validates every request with the route table.

let home: Awaited<ReturnType<typeof makeHome>>;
let certificate: Awaited<ReturnType<typeof makeCertificate>>;
let server: Standing;
let answers: Record<string, (seen: Seen) => Answer | undefined> = {};
let env: Record<string, string>;

beforeAll(async () => {
  certificate = await makeCertificate();
  server = await standIn({
    tls: certificate,
    answers: new Proxy({}, { get: (_, id: string) => answers[id] }),
  });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  const made = await run(['operator', 'init'], env);
  expect(made.exit, made.stderr).toBe(0);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  answers = {};
  server.seen.length = 0;
});

const keyFile = () => join(home.path, 'config', 'muster', 'operator.key');
const muster = (...args: string[]) => run(args, env);
const routes = () => server.seen.map(({ route }) => route.id).filter((id) => id !== 'challenge' && id !== 'verify');
const sent = (id: string) => server.seen.find(({ route }) => route.id === id);

describe('keys and sign-in sessions', () => {
  test('operator init creates a key once, and prints only its public key on stdout', async () => {
    const again = await muster('operator', 'init');
    expect(again).toMatchObject({ exit: 1, stdout: '' });
    expect(again.stderr).toContain('--force');
    expect(again.stderr).toContain('muster operator whoami --public-key');
    // There is no terminal, so the program cannot ask.
    const nonInteractive = { interactive: false } as Prompter;
    const init = ['operator', 'init', '--force', '--key-file', join(home.path, 'other')];
    const captured = await run(init, env);
    expect(captured.stdout).toMatch(/^[0-9a-f]{64}\n$/);
    expect(captured.stderr).toContain('Anyone who has that file can sign in as you');
    expect(captured.stderr).not.toContain('Next');
    const forced = await run(init, env, '', { columns: 80, prompt: nonInteractive });
    expect(forced.stdout).toMatch(/^[0-9a-f]{64}\n$/);
    expect(forced.stderr).toContain(`muster orchestrator init --username NAME --operator-key ${forced.stdout.trim()}`);
    expect((await stat(join(home.path, 'other'))).mode & 0o777).toBe(0o600);
  });

  test('login signs in, and later commands use its session', async () => {
    const login = await muster('login');
    expect(login).toMatchObject({ exit: 0, stderr: '' });
    expect(login.stdout).toContain('as ada (admin)');
    server.seen.length = 0;
    expect((await muster('modules', 'list')).exit).toBe(0);
    expect(server.seen.map(({ route }) => route.id)).toEqual(['listModules', 'listOperators']);
  });

  test('signs in again without a message if the orchestrator no longer has the session', async () => {
    await muster('login');
    server.forgetSessions();
    expect(await muster('agents', 'list')).toMatchObject({ exit: 0, stderr: '' });
  });

  test('login stores the given certificate, and later commands refuse another one', async () => {
    const { MUSTER_FINGERPRINT: fingerprint = '', ...withoutFingerprint } = env;
    const own = {
      ...withoutFingerprint,
      XDG_CONFIG_HOME: join(home.path, 'trust'),
      MUSTER_KEY_FILE: keyFile(),
    };
    const unknown = await run(['agents', 'list'], own);
    expect(unknown).toMatchObject({ exit: 5, stdout: '' });
    expect(unknown.stderr).toContain(`muster login --url ${server.url} --fingerprint ${showFingerprint(fingerprint)}`);
    expect(server.seen).toEqual([]);
    expect((await run(['login', '--fingerprint', fingerprint], own)).exit).toBe(0);
    expect((await run(['agents', 'list'], own)).exit).toBe(0);
    server.seen.length = 0;
    const wrong = await run(['agents', 'list', '--fingerprint', 'ab'.repeat(32)], own);
    expect(wrong.exit).toBe(5);
    expect(wrong.stderr).toContain('is not the one from --fingerprint');
    expect(server.seen).toEqual([]);
  });

  test('login --accept-new trusts and pins an unknown certificate, but never a changed one', async () => {
    const { MUSTER_FINGERPRINT: _, ...withoutFingerprint } = env;
    const own = { ...withoutFingerprint, XDG_CONFIG_HOME: join(home.path, 'rig'), MUSTER_KEY_FILE: keyFile() };
    const login = await run(['login', '--accept-new'], own);
    expect(login.exit, login.stderr).toBe(0);
    expect(login.stderr).toContain('without verification (--accept-new)');
    expect((await run(['agents', 'list'], own)).exit).toBe(0);
    const other = await standIn({ tls: await makeCertificate() });
    const path = join(home.path, 'rig', 'muster', 'profiles.json');
    const { port } = new URL(server.url);
    await writeFile(path, (await readFile(path, 'utf8')).replace(`:${port}`, `:${new URL(other.url).port}`));
    expect((await run(['login', '--accept-new', '--url', other.url], own)).exit).toBe(5);
    expect(other.seen).toEqual([]);
    await other.close();
  });

  test('login --accept-new refuses a certificate for a different name, and an unknown certificate from a server that had a CA-signed one', async () => {
    const certificate = await makeCertificate();
    const other = await standIn({ tls: certificate });
    const { MUSTER_FINGERPRINT: _, ...withoutFingerprint } = env;
    const own = {
      ...withoutFingerprint,
      XDG_CONFIG_HOME: join(home.path, 'known'),
      XDG_CACHE_HOME: join(home.path, 'known-cache'),
      MUSTER_KEY_FILE: keyFile(),
    };
    const authorities = getCACertificates('default');
    setDefaultCACertificates([...authorities, certificate.cert]);
    try {
      const wrongName = other.url.replace('127.0.0.1', 'localhost');
      const refused = await run(['login', '--accept-new', '--url', wrongName], own);
      expect(refused.exit).toBe(5);
      expect(refused.stderr).toContain('it is for another name');
      expect(other.seen).toEqual([]);
      expect((await run(['login', '--url', other.url], own)).exit).toBe(0);
    } finally {
      setDefaultCACertificates(authorities);
    }
    other.seen.length = 0;
    const replaced = await run(['login', '--accept-new', '--url', other.url], own);
    expect(replaced.exit).toBe(5);
    expect(replaced.stderr).toContain('a certificate authority vouched for the earlier one');
    expect(other.seen).toEqual([]);
    await other.close();
  });

  test('warns whenever the certificate is not checked', async () => {
    const { MUSTER_FINGERPRINT: _, ...withoutFingerprint } = env;
    const ran = await run(['status', '--insecure-skip-verify'], {
      ...withoutFingerprint,
      XDG_CONFIG_HOME: join(home.path, 'none'),
    });
    expect(ran.exit).toBe(0);
    expect(ran.stderr).toContain('is not verified');
  });

  test('reports the public key that the orchestrator does not recognize', async () => {
    answers.challenge = () => ({ code: 'operator_unknown', detail: 'this key may not sign in' });
    const ran = await muster('login');
    expect(ran.exit).toBe(4);
    expect(ran.stderr).toMatch(/public key [0-9a-f]{64}/);
  });

  test('reports a missing key and the command that creates one', async () => {
    const ran = await run(['agents', 'list', '--key-file', join(home.path, 'nothing')], env);
    expect(ran.exit).toBe(4);
    expect(ran.stderr).toContain('muster operator init');
  });

  test('whoami prints the operator', async () => {
    expect((await muster('operator', 'whoami')).stdout).toContain('ada (admin)');
    expect(JSON.parse((await muster('operator', 'whoami', '--json')).stdout)).toMatchObject({
      username: 'ada',
      url: server.url,
    });
    expect((await muster('operator', 'whoami', '--public-key')).stdout).toMatch(/^[0-9a-f]{64}\n$/);
  });

  test('does not send a stored token to a server with a different key if certificates are not checked', async () => {
    const genuine = await standIn({ tls: certificate });
    const { url } = genuine;
    const { MUSTER_FINGERPRINT: _, ...rest } = env;
    const unchecked = { ...rest, MUSTER_URL: url, MUSTER_INSECURE_SKIP_VERIFY: '1' };
    for (let times = 0; times < 2; times++) expect((await run(['modules', 'list'], unchecked)).exit).toBe(0);
    // The second call used the stored token and did not sign in.
    expect(genuine.seen.filter(({ route }) => route.id === 'verify')).toHaveLength(1);
    const tokens = genuine.seen.map(({ headers }) => headers.authorization).filter((token) => token !== undefined);
    await genuine.close();
    const other = await standIn({ tls: await makeCertificate(), port: Number(new URL(url).port) });
    await run(['modules', 'list'], unchecked);
    expect(other.seen.length).toBeGreaterThan(0);
    for (const { headers } of other.seen) expect(tokens).not.toContain(headers.authorization);
    await other.close();
  });

  test('does not send a stored token to an unknown server if a CA signed the previous server’s certificate', async () => {
    const { MUSTER_FINGERPRINT: _, ...rest } = env;
    const vouched = { key: certificate.key, cert: certificate.cert };
    const genuine = await standIn({ tls: vouched });
    const { url } = genuine;
    const own = {
      ...rest,
      MUSTER_URL: url,
      MUSTER_KEY_FILE: keyFile(),
      XDG_CONFIG_HOME: join(home.path, 'vouched'),
    };
    const authority = join(home.path, 'authority.pem');
    await writeFile(authority, certificate.cert);
    for (let times = 0; times < 2; times++)
      expect((await spawned(['modules', 'list'], { ...own, NODE_EXTRA_CA_CERTS: authority })).exit).toBe(0);
    // The second call used the stored token and did not sign in.
    expect(genuine.seen.filter(({ route }) => route.id === 'verify')).toHaveLength(1);
    const tokens = genuine.seen.map(({ headers }) => headers.authorization).filter((token) => token !== undefined);
    await genuine.close();

    const stranger = await standIn({ tls: await makeCertificate(), port: Number(new URL(url).port) });
    const prompt = { interactive: true, confirm: async () => true } as unknown as Prompter;
    expect((await run(['modules', 'list'], own, '', { columns: 80, prompt })).exit).toBe(0);
    expect(stranger.seen.length).toBeGreaterThan(0);
    for (const { headers } of stranger.seen) expect(tokens).not.toContain(headers.authorization);
    await stranger.close();
  });

  test('does not send a stored token to a server with a different pinned certificate', async () => {
    await muster('login');
    const tokens = server.seen.map(({ headers }) => headers.authorization).filter((token) => token !== undefined);
    expect(tokens).not.toEqual([]);
    const { port } = new URL(server.url);
    await server.close();
    const other = await makeCertificate();
    const stranger = await standIn({ tls: other, port: Number(port) });
    await run(['modules', 'list', '--fingerprint', other.fingerprint], env);
    expect(stranger.seen.length).toBeGreaterThan(0);
    for (const { headers } of stranger.seen) expect(tokens).not.toContain(headers.authorization);
    await stranger.close();
    server = await standIn({
      tls: certificate,
      port: Number(port),
      answers: new Proxy({}, { get: (_, id: string) => answers[id] }),
    });
  });

  test('logout revokes the session on the server and deletes it locally', async () => {
    await muster('login');
    expect((await muster('logout')).exit).toBe(0);
    expect(routes()).toContain('logout');
    expect((await muster('logout')).exit).toBe(0);
  });

  test('uses the profile if no flags specify an orchestrator', async () => {
    const { MUSTER_URL: _url, MUSTER_FINGERPRINT: _print, ...withoutServer } = env;
    const own = {
      ...withoutServer,
      XDG_CONFIG_HOME: join(home.path, 'profiles'),
      MUSTER_KEY_FILE: keyFile(),
    };
    const make = ['profile', 'create', 'local', '--url', server.url, '--fingerprint', certificate.fingerprint];
    expect((await run(make, own)).exit).toBe(0);
    expect((await run(make, own)).exit).toBe(2);
    expect((await run([...make, '--replace'], own)).exit).toBe(0);
    expect((await run(['status'], own)).exit).toBe(0);
    const [profile] = JSON.parse((await run(['profile', 'list', '--json'], own)).stdout);
    expect(profile).toMatchObject({
      name: 'local',
      current: true,
      fingerprint: showFingerprint(certificate.fingerprint),
    });
    expect((await run(['status', '--profile', 'lokal'], own)).exit).toBe(2);
    expect((await run(['profile', 'use', 'local'], own)).exit).toBe(0);
    expect((await run(['profile', 'remove', 'local'], own)).exit).toBe(0);
    expect((await run(['profile', 'list', '--json'], own)).stdout).toBe('[]\n');
  });
});

describe('agents', () => {
  test('prints a list in a pipe with full IDs, without colors, and without truncation', async () => {
    const { stdout, exit } = await muster('agents', 'list', '--filter', 'role=web');
    expect(exit).toBe(0);
    expect(stdout).toContain('3f8c2b0a9d7e41568c1b2a3d4e5f6071');
    expect(stdout).not.toContain('\u001b');
    expect(sent('listAgents')?.query).toEqual({ filter: 'role=web', sort: 'name' });
    expect(JSON.parse((await muster('agents', 'list', '--json')).stdout)).toHaveLength(1);
  });

  test('agents show prints tags, and attributes under the names that modules use', async () => {
    answers.getAgent = () => ({ body: agent({ attributes: { 'fact.rack': 'b\u001b[2J', platform: 'linux' } }) });
    const { stdout } = await muster('agents', 'show', 'web-1');
    expect(stdout).toMatch(/^web-1 {2}approved\nnode id {5}3f8c2b0a9d7e41568c1b2a3d4e5f6071\n/);
    expect(stdout).toContain('  role  web\n');
    expect(stdout).toContain('  fact.rack  b\\x1b[2J\n  platform   linux\n');
    expect(JSON.parse((await muster('agents', 'show', 'web-1', '--json')).stdout)).toMatchObject({ name: 'web-1' });
  });

  test('reports that a rejected agent reconnects some time after it is approved', async () => {
    expect((await muster('agents', 'approve', 'web-1')).stderr).toBe('');
    answers.getAgent = () => ({ body: agent({ name: null, status: 'pending', pin_source: 'first_use' }) });
    expect((await muster('agents', 'approve', 'web-1', '--name', 'web-1')).stderr).toContain('unverified');
    answers.getAgent = () => ({ body: agent({ status: 'rejected' }) });
    expect((await muster('agents', 'approve', 'web-1')).stderr).toContain(
      'within 10 minutes; restart it to connect immediately',
    );
  });

  test('lists enrollment tokens without their values, and revokes them by the last characters of their IDs', async () => {
    expect((await muster('enrolment-tokens', 'list')).stdout).toMatch(/01KAGZ3N8V5T1Q6W9X2Y4Z7B8C +web-2 +yes +1 /);
    expect((await muster('enrolment-tokens', 'revoke', '7b8c')).stdout).toBe('Revoked 01KAGZ3N8V5T1Q6W9X2Y4Z7B8C.\n');
    expect(sent('revokeEnrolmentToken')?.params).toEqual({ id: '01KAGZ3N8V5T1Q6W9X2Y4Z7B8C' });
    answers.listEnrolmentTokens = () => ({ body: [] });
    expect((await muster('enrolment-tokens', 'list')).stderr).toContain('muster agents enroll');
  });

  test('requires a name for the first approval of an agent, and requires it as a flag if there is no terminal', async () => {
    const pending = agent({ name: null, status: 'pending' });
    answers.getAgent = () => ({ body: pending });
    answers.listAgents = () => ({ body: [pending] });
    const nameless = await muster('agents', 'approve', '3f8c');
    expect(nameless.exit).toBe(2);
    expect(nameless.stderr).toContain('--name');
    expect(routes()).not.toContain('setAgentStatus');
    expect((await muster('agents', 'approve', '3f8c', '--name', '1bad')).exit).toBe(2);
    expect((await muster('agents', 'approve', '3f8c', '--name', 'web-1')).exit).toBe(0);
    expect(sent('setAgentStatus')).toMatchObject({
      params: { node_id: pending.node_id },
      body: { status: 'approved', name: 'web-1' },
    });
  });

  test('continues if one of several agents cannot be rejected, and exits with 6', async () => {
    const agents = [agent({}), agent({ name: 'web-2', node_id: 'ab'.repeat(16) })];
    answers.getAgent = ({ params }) => {
      const body = agents.find(({ name }) => name === params.node_id);
      return body ? { body } : { code: 'agent_not_found', detail: 'no such agent' };
    };
    answers.listAgents = () => ({ body: agents });
    answers.setAgentStatus = ({ params }) =>
      params.node_id === agents[0]?.node_id ? { code: 'storage_unavailable', detail: 'no disk' } : undefined;
    const ran = await muster('agents', 'reject', 'web-1', 'web-2');
    expect(ran.exit).toBe(6);
    expect(ran.stdout).toBe('Rejected web-2.\n');
    expect(ran.stderr).toContain('no disk');
    const unknown = await muster('agents', 'reject', 'wbe-1');
    expect(unknown.exit).toBe(1);
    expect(unknown.stderr).toContain('Did you mean web-1?');
  });

  test('asks for confirmation before it removes agents, and requires --yes if there is no terminal', async () => {
    expect((await muster('agents', 'remove', 'web-1')).exit).toBe(2);
    expect(routes()).not.toContain('removeAgent');
    expect((await muster('agents', 'remove', 'web-1', '--yes')).exit).toBe(0);
    expect(routes()).toContain('removeAgent');
  });

  test('sets and removes each tag with its own request', async () => {
    expect((await muster('agents', 'tag', 'web-1', 'role=web', 'site=paris')).stdout).toBe('web-1: role=web\n');
    expect(
      server.seen.filter(({ route }) => route.id === 'putTag').map(({ params, body }) => [params.key, body]),
    ).toEqual([
      ['role', { value: 'web' }],
      ['site', { value: 'paris' }],
    ]);
    expect((await muster('agents', 'tag', 'web-1', 'role')).exit).toBe(2);
    expect((await muster('agents', 'untag', 'web-1', 'role')).exit).toBe(0);
    expect(sent('deleteTag')?.params.key).toBe('role');
  });

  describe('verbs for several agents', () => {
    const waiting = ['web-7', 'web-8', '1.2.3.4', 'db-1', 'db-2'].map((initial_hostname, at) =>
      agent({ name: null, status: 'pending', node_id: `${at}f`.repeat(16), initial_hostname, attributes: {} }),
    );
    const named = ['web-1', 'web-2', 'db-1', 'db-2'].map((name, at) => agent({ name, node_id: `${at}e`.repeat(16) }));

    test('approves all pending agents under their hostnames, and exits with 6 if a hostname is not a valid name', async () => {
      answers.listAgents = () => ({ body: waiting });
      answers.setAgentStatus = ({ params, body }) => ({
        body: agent({ node_id: params.node_id ?? '', name: (body as { name: string }).name }),
      });
      const unconfirmed = await muster('agents', 'approve', '--all-pending', '--hostnames');
      expect(unconfirmed).toMatchObject({ exit: 2, stdout: '' });
      expect(unconfirmed.stderr).toContain('confirmation is needed to approve 5 agents');
      const ran = await muster('agents', 'approve', '--all-pending', '--hostnames', '--yes');
      expect(ran.exit).toBe(6);
      expect(ran.stdout.match(/^Approved (\S+)/gm)).toEqual(
        ['web-7', 'web-8', 'db-1', 'db-2'].map((name) => `Approved ${name}`),
      );
      expect(ran.stderr).toContain('its hostname "1.2.3.4" is not a valid name');
      expect(sent('listAgents')?.query).toEqual({ sort: 'name', status: 'pending' });
      expect((await muster('agents', 'approve', '0f', '1f', '--name', 'x')).exit).toBe(2);
    });

    test('sets tags of many agents after confirmation, and reads the result with one request', async () => {
      answers.listAgents = () => ({ body: named });
      const refused = await muster('agents', 'tag', '-l', 'role=web', 'site=paris');
      expect(refused.exit).toBe(2);
      expect(refused.stderr).toContain('set site=paris on 4 agents: web-1, web-2, db-1, db-2');
      expect(routes()).not.toContain('putTag');
      server.seen.length = 0;
      const ran = await muster('agents', 'tag', '-l', 'role=web', 'site=paris', '--yes', '--json');
      expect(ran.exit).toBe(0);
      expect(JSON.parse(ran.stdout).map(({ name }: { name: string }) => name)).toEqual(named.map(({ name }) => name));
      expect(routes().toSorted()).toEqual(['listAgents', 'listAgents', ...named.map(() => 'putTag')]);
    });

    test('sets tags without a value, and refuses a tag that is the name of an agent', async () => {
      answers.listAgents = () => ({ body: named });
      answers.getAgent = ({ params }) => {
        const body = named.find(({ name, node_id }) => name === params.node_id || node_id === params.node_id);
        return body ? { body } : { code: 'agent_not_found', detail: 'no such agent' };
      };
      const ran = await muster('agents', 'tag', 'web-1', 'canary');
      expect(ran.exit, ran.stderr).toBe(0);
      expect(sent('putTag')).toMatchObject({ params: { key: 'canary' }, body: { value: '' } });
      server.seen.length = 0;
      const mistaken = await muster('agents', 'tag', 'web-1', 'web-2');
      expect(mistaken.exit).toBe(2);
      expect(mistaken.stderr).toContain('muster agents tag web-1,web-2 canary');
      expect(routes()).not.toContain('putTag');
    });

    test('untag accepts agents separated by commas, or a selector', async () => {
      answers.listAgents = () => ({ body: named });
      expect((await muster('agents', 'untag', 'web-1,db-1', 'role', 'site')).exit).toBe(0);
      const taken = server.seen.filter(({ route }) => route.id === 'deleteTag').map(({ params }) => params);
      expect(taken.map(({ node_id, key }) => `${node_id?.slice(0, 2)} ${key}`).toSorted()).toEqual([
        '0e role',
        '0e site',
        '2e role',
        '2e site',
      ]);
      expect((await muster('agents', 'untag', 'web-1')).exit).toBe(2);
      expect((await muster('agents', 'untag', '-l', 'role', 'role', '--yes')).exit).toBe(0);
    });

    test('prints several agents as an array with --json, and a single named agent as an object', async () => {
      answers.listAgents = () => ({ body: named });
      answers.getAgent = () => ({ body: named[0] });
      expect((await muster('agents', 'show', 'web-1', 'db-1')).stdout.match(/^node id/gm)).toHaveLength(2);
      expect(JSON.parse((await muster('agents', 'show', 'web-1', '--json')).stdout)).toMatchObject({ name: 'web-1' });
      expect(JSON.parse((await muster('agents', 'show', '-l', 'role', '--json')).stdout)).toHaveLength(4);
    });

    test('shows the position of the error in a selector', async () => {
      answers.listAgents = () => ({
        code: 'selector_invalid',
        detail: 'expected a value (column 6)',
        errors: [{ path: '/filter', message: 'expected a value', line: 1, column: 6 }],
      });
      const ran = await muster('agents', 'list', '-l', 'role=');
      expect(ran.exit).toBe(2);
      expect(ran.stderr).toContain('error: expected a value (column 6)\n  role=\n       ^\nhint: ');
    });
  });

  test('enroll prints only the command to paste on stdout', async () => {
    const { stdout, stderr, exit } = await muster(
      'agents',
      'enroll',
      '--name',
      'web-2',
      '--tag',
      'role=web',
      '--expires',
      '12h',
    );
    expect(exit).toBe(0);
    expect(stdout).toMatch(
      /^\(curl -fsSk --pinnedpubkey 'sha256.*\/install\/agent\.sh \|\| echo exit 1\) \| MUSTER_TOKEN=mt_4Jq2k9wZr7 sh -s -- .*\n$/,
    );
    expect(stderr).toMatch(/\n {2}MUSTER_TOKEN=mt_4Jq2k9wZr7 muster agent connect .*\n/);
    expect(sent('createEnrolmentToken')?.body).toEqual({
      name: 'web-2',
      tags: { role: 'web' },
      expires_in: 43_200,
      uses: 1,
      approve: true,
    });
  });
});

describe('modules', () => {
  const good =
    'name: motd\nsupports: [{ platform: linux }]\nresources:\n  - id: motd\n    resource: { file-unix: { path: /etc/motd, content: hi } }\n';
  const bad =
    'name: motd\nsupports: [{ platform: linux }]\nresources:\n  - id: motd\n    resource: { file-unix: { path: /etc/motd, contnt: hi } }\n';
  const file = (name: string) => join(home.path, name);
  beforeAll(async () => {
    await writeFile(file('good.yml'), good);
    await writeFile(file('bad.yml'), bad);
  });

  test('validate requires no orchestrator, and prints errors in the format of compilers', async () => {
    const ran = await run(['modules', 'validate', file('good.yml'), file('bad.yml')], {
      ...home.env,
      MUSTER_URL: 'https://127.0.0.1:1',
    });
    expect(ran.exit).toBe(1);
    expect(ran.stdout).toMatch(new RegExp(`^${file('bad.yml')}:5:\\d+ .*content`, 'm'));
    expect(ran.stdout).not.toContain('good.yml');
    expect((await muster('modules', 'validate', file('good.yml'))).exit).toBe(0);
    const json = JSON.parse((await muster('modules', 'validate', file('bad.yml'), '--json')).stdout);
    expect(json).toMatchObject({ valid: false, files: [{ valid: false, faults: [{ line: 5 }] }] });
    expect((await run(['modules', 'validate', '-'], env, good)).exit).toBe(0);
    expect((await muster('modules', 'validate', file('absent.yml'))).stderr).toContain('no such file');
  });

  test('check finds conflicts between the modules in a directory without an orchestrator', async () => {
    const folder = join(home.path, 'modules');
    await mkdir(join(folder, 'web', '.git'), { recursive: true });
    await writeFile(join(folder, 'motd.yml'), good);
    await writeFile(join(folder, 'web', 'web.yaml'), good.replace('name: motd', 'name: web').replace('hi', 'ho'));
    await writeFile(join(folder, 'web', '.git', 'x.yml'), 'not a module');
    const away = { ...home.env, MUSTER_URL: 'https://127.0.0.1:1' };
    const ran = await run(['modules', 'check', folder], away);
    expect(ran).toMatchObject({ exit: 1, stderr: '1 of 2 modules with errors\n' });
    expect(ran.stdout).toMatch(
      /^\S+\/web\/web\.yaml:5:\d+ file-unix "\/etc\/motd" is declared differently in module "motd" \(id "motd"\): the values of `content` differ; keep one of them, or make them agree\n[\s\S]*\n> 5 \| /,
    );
    // Each module alone is valid.
    expect((await run(['modules', 'validate', folder], away)).exit).toBe(0);
    const twice = JSON.parse((await run(['modules', 'check', '--json', folder, file('good.yml')], away)).stdout);
    expect(twice.files.find((each: { file: string }) => each.file === file('good.yml'))).toMatchObject({
      valid: false,
      faults: [{ line: 1, message: expect.stringContaining('has the name "motd" too') }],
    });
    expect((await run(['modules', 'check', join(folder, 'web', '.git', '..', '..', 'none')], away)).exit).toBe(1);
  });

  test('deps prints the resource order of files as text, for Graphviz, and as JSON, without an orchestrator', async () => {
    const away = { ...home.env, MUSTER_URL: 'https://127.0.0.1:1' };
    await writeFile(
      file('order.yml'),
      'name: order\nsupports: [{ platform: linux }]\nresources:\n  - id: b\n    depends_on: [a]\n    resource: { directory-unix: { path: /b } }\n  - id: a\n    resource: { directory-unix: { path: "/a\\"" } }\n',
    );
    const deps = (...args: string[]) => run(['modules', 'deps', file('order.yml'), ...args], away);
    expect((await deps()).stdout).toMatch(/1 +order\/a .*\n2 +order\/b .*\n +└ after order\/a/);
    const graph = (await deps('--dot')).stdout;
    expect(graph).toContain('digraph modules {\n');
    expect(graph).toContain('n0 [label="order/a: directory-unix /a\\""];');
    expect(graph).toContain('  n0 -> n1;\n');
    expect(JSON.parse((await deps('--json', '--attribute', 'platform=linux')).stdout)).toMatchObject({
      modules: ['order'],
      resources: [{ id: 'a' }, { id: 'b', depends_on: [0] }],
    });
    const other = await deps('--attribute', 'platform=macos');
    expect(other).toMatchObject({ exit: 1, stdout: '' });
    expect((await deps('motd')).exit).toBe(2);
    expect((await run(['modules', 'deps', file('bad.yml')], away)).exit).toBe(1);
  });

  test('check and deps follow the requirements of modules in files', async () => {
    const away = { ...home.env, MUSTER_URL: 'https://127.0.0.1:1' };
    const module = (name: string, more: string) =>
      writeFile(file(`${name}.yml`), `name: ${name}\nsupports: [{ platform: linux }]\n${more}\n`);
    await module('below', 'requires: [{ module: above }]');
    await module('above', 'requires: [{ module: below }]');
    const cycle = await run(['modules', 'check', file('below.yml'), file('above.yml')], away);
    expect(cycle.stdout).toContain('below.yml:3:1 modules require each other: below -> above -> below');
    const path = (at: string) => `resources: [{ resource: { file-unix: { path: "${at}" } } }]`;
    await module('below', `parameters: { at: { type: string } }\n${path('${{ param.at }}')}`);
    await module('above', `requires: [{ module: below, with: { at: /x } }, { module: stored }]\n${path('/a')}`);
    const deps = ['modules', 'deps', file('above.yml'), file('below.yml'), '--attribute', 'platform=linux'];
    expect(JSON.parse((await run([...deps, '--json'], away)).stdout)).toMatchObject({
      modules: ['below', 'above'],
      resources: [{ identity: '/x' }, { identity: '/a' }],
    });
    await module('above', 'requires: [{ module: below, with: { bt: /x } }]');
    const unknown = await run(['modules', 'check', file('below.yml'), file('above.yml')], away);
    expect(unknown.stdout).toContain('module "below": the module has no parameter "bt": did you mean "at"?');
  });

  test('upload checks the file first, then sends it under the name in the module', async () => {
    const faulty = await muster('modules', 'upload', file('bad.yml'));
    expect(faulty.exit).toBe(1);
    expect(faulty.stderr).toContain('bad.yml:5:');
    expect(server.seen).toEqual([]);
    expect((await muster('modules', 'upload', file('good.yml'))).stdout).toMatch(
      /^Uploaded motd .*, now revision 1\.\n$/,
    );
    expect(sent('uploadModule')?.body).toEqual({ name: 'motd', content: good });
    expect((await muster('modules', 'upload', file('bad.yml'), file('good.yml'))).exit).toBe(6);
    const prompt = { interactive: true } as Prompter;
    const seen = await run(['modules', 'upload', file('bad.yml')], { ...env, NO_COLOR: '1' }, '', {
      columns: 100,
      prompt,
    });
    expect(seen.stderr).toMatch(/bad\.yml:5:\d+ [\s\S]*\n> 5 \| .*\n +\| +\^\n/);
    const json = await muster('modules', 'upload', file('bad.yml'), '--json');
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: 'module_invalid', errors: [{ line: 5 }] },
      exit: 1,
    });
  });

  test('upload prints errors from the orchestrator in the format of compilers', async () => {
    answers.uploadModule = () => ({
      code: 'module_invalid',
      detail: 'the module has errors',
      errors: [{ path: '/resources/0', message: 'not here', line: 4, column: 5 }],
    });
    const ran = await muster('modules', 'upload', file('good.yml'));
    expect(ran.exit).toBe(1);
    expect(ran.stderr).toContain(`${file('good.yml')}:4:5 not here`);
  });

  test('modules show prints the exact text of a module', async () => {
    answers.getModule = ({ route }) => ({
      body: { ...(route.example.answer as object), content: `${good}# \u001b[31m` },
    });
    expect((await muster('modules', 'show', 'motd')).stdout).toBe(`${good}# \u001b[31m`);
    answers.getModule = () => ({ code: 'module_not_found', detail: 'no such module' });
    const ran = await muster('modules', 'show', 'motdd');
    expect(ran.exit).toBe(1);
    expect(ran.stderr).toContain('Did you mean motd?');
    answers.getModule = ({ query }) =>
      query.revision === undefined ? undefined : { code: 'module_not_found', detail: 'no such module' };
    expect((await muster('modules', 'show', 'motd', '--revision', '9')).stderr).toBe(
      'error: motd has no revision 9; its newest is 1\n',
    );
  });

  test('lists and removes modules, and prints their schema', async () => {
    expect((await muster('modules', 'list')).stdout).toMatch(/motd .* ada/);
    expect((await muster('modules', 'remove', 'motd', '--yes')).exit).toBe(0);
    expect(JSON.parse((await muster('modules', 'schema')).stdout)).toMatchObject({ type: 'object' });
  });

  test('prints the output schemas of renamed nouns under their former names', async () => {
    const verbs = Object.keys(await loadShapes()).map((words) => words.split(' '));
    for (const [former, now] of Object.entries(formerNouns)) {
      const renamed = verbs.filter(([noun]) => noun === now);
      expect(renamed, former).not.toEqual([]);
      for (const [, ...verb] of renamed)
        expect(await muster('schema', former, ...verb), former).toEqual(await muster('schema', now, ...verb));
      expect((await muster('schema', former, ...(renamed[0]?.slice(1) ?? []))).exit, former).toBe(0);
    }
  });
});

describe('plan, apply, drift, operations', () => {
  const changes = operation(variety);
  const nothing = operation([result({})]);

  test('plan exits with 3 only on request, and only if there are changes', async () => {
    answers.planAgent = () => ({ body: changes });
    const plain = await muster('plan', 'web-1', '-m', 'motd', '-m', 'base,site');
    expect(plain.exit).toBe(0);
    expect(plain.stdout).toContain('Plan: 2 to create, 2 to update, 1 to remove');
    expect(plain.stdout).not.toContain('\u001b');
    expect(sent('planAgent')?.body).toEqual({ modules: ['motd', 'base', 'site'] });
    const json = await muster('plan', 'web-1', '--exit-code', '--json');
    expect(json.exit).toBe(3);
    expect(JSON.parse(json.stdout)).toEqual(changes);
    answers.planAgent = () => ({ body: nothing });
    expect((await muster('plan', 'web-1', '--exit-code')).exit).toBe(0);
    answers.planAgent = () => ({ body: operation([result({ status: 'failed' })], { status: 'failed' }) });
    expect((await muster('plan', 'web-1', '--exit-code')).exit).toBe(1);
  });

  test('suggests the nearest name for an unknown module', async () => {
    for (const code of ['unknown_module', 'module_not_found'] as const) {
      answers.planAgent = () => ({ code, detail: 'there is no module "modt"' });
      expect((await muster('plan', 'web-1', '-m', 'modt')).stderr).toContain('Did you mean motd?');
    }
  });

  test('reports an offline agent as unreachable, and suggests --queue only for an apply', async () => {
    answers.applyAgent = () => ({ code: 'agent_not_connected', detail: 'web-1 is offline' });
    const ran = await muster('apply', 'web-1', '-m', 'motd', '-m', "the boss's", '--yes');
    expect(ran.exit).toBe(5);
    expect(ran.stderr).toContain('muster agents show web-1. To apply when it reconnects, add --queue.');
    answers.planAgent = answers.applyAgent;
    const planned = await muster('plan', 'web-1');
    expect(planned.stderr).toContain('muster agents show web-1. Plan again when it has reconnected.');
    expect(planned.stderr).not.toMatch(/--queue|--yes|--remove/);
  });

  test.each([
    [['windows', 'add', 'x', '--for', '2h', '--until', '2027-01-31'], '--until cannot be combined with --for'],
    [['drift', '--history', '--limit', '2'], '--history needs an agent'],
    [['agents', 'tag', 'role web'], 'no tag was specified'],
    [['modules', 'upload', '/no/such/file'], 'cannot read /no/such/file: no such file'],
  ])('explains the usage error of %s', async (args, message) => {
    const { exit, stderr } = await muster(...args);
    expect(exit).toBeGreaterThan(0);
    expect(stderr).toContain(message);
  });

  test('does not suggest applying a removed module', async () => {
    answers.listModules = () => ({ body: [] });
    answers.planAgent = () => ({ body: operation(variety) });
    const ran = await muster('apply', 'web-1', '--yes');
    expect(ran.exit).toBe(1);
    expect(ran.stderr).toContain('To keep them, upload site again');
    expect(ran.stderr).not.toContain('-m site');
  });

  test('refuses an apply without -m that would remove resources, and shows both alternatives', async () => {
    answers.listModules = () => ({
      body: ['site', 'first', 'second'].map((name) => ({ name, uploaded_at: 1, uploaded_by: 'x' })),
    });
    answers.planAgent = () => ({ body: operation(variety) });
    const ran = await muster('apply', 'web-1', '--yes');
    expect(ran).toMatchObject({ exit: 1, stdout: '' });
    expect(ran.stderr).toContain('would remove 1 resource; nothing was changed');
    expect(ran.stderr).toContain('muster apply web-1 -m site\n');
    expect(ran.stderr).toContain('muster apply web-1 --remove\n');
    expect((await muster('apply', 'web-1', '--yes', '--queue')).exit).toBe(2);
    expect(routes()).not.toContain('applyAgent');
    expect((await muster('apply', 'web-1', '--yes', '--remove')).exit).toBe(0);
    expect(sent('applyAgent')?.body).toEqual({ modules: [], offline: 'report' });
    const removals = ['second', 'first'].map((module) => result({ module, action: 'remove', status: 'would_change' }));
    answers.planAgent = () => ({ body: operation(removals) });
    expect((await muster('apply', 'web-1', '--yes')).stderr).toContain('apply web-1 -m first -m second\n');
    answers.planAgent = () => ({ body: operation([result({ action: 'update', status: 'would_change' })]) });
    server.seen.length = 0;
    expect((await muster('apply', 'web-1', '--yes')).exit).toBe(0);
    expect(routes()).toContain('applyAgent');
  });

  test('applies exactly the plan that it checked for removals, and refuses to apply if the plan failed', async () => {
    const planned = operation([result({ action: 'update', status: 'would_change' })]);
    answers.planAgent = () => ({ body: planned });
    expect((await muster('apply', 'web-1', '--yes')).exit).toBe(0);
    expect(sent('applyAgent')?.body).toEqual({ modules: [], offline: 'report', plan_id: planned.operation_id });
    server.seen.length = 0;
    // A failed plan may have stopped before it found the resources to remove.
    for (const status of ['failed', 'cancelled'] as const) {
      answers.planAgent = () => ({ body: operation([result({ status: 'failed' })], { status, modules: ['motd'] }) });
      const ran = await muster('apply', 'web-1', '--yes');
      expect(ran.exit).toBe(1);
      expect(ran.stderr).toContain('the plan failed, so removals are not known; nothing was changed');
      expect(ran.stderr).toContain('muster apply web-1 -m motd\n');
      expect(ran.stderr).not.toMatch(/--yes|--remove/);
    }
    expect(routes()).not.toContain('applyAgent');
    expect((await muster('apply', 'web-1', '-m', 'motd', '--yes')).exit).toBe(0);
    expect(sent('applyAgent')?.body).toEqual({ modules: ['motd'], offline: 'report' });
  });

  test('prints resources that a removal left behind, even without -v', async () => {
    const left = result({ type: 'directory-unix', identity: '/srv', message: 'left: it is not empty' });
    answers.applyAgent = () => ({ body: operation([left], { kind: 'apply' }) });
    const ran = await muster('apply', 'web-1', '--yes', '--remove');
    expect(ran.stdout).toMatch(/kept +directory-unix \/srv .*\n +left: it is not empty/);
    expect(ran.stdout).toContain('Nothing to do.');
  });

  test('apply without a terminal requires --yes and otherwise sends nothing', async () => {
    const ran = await muster('apply', 'web-1', '-m', 'motd');
    expect(ran.exit).toBe(2);
    expect(ran.stderr).toContain('--yes');
    expect(server.seen).toEqual([]);
  });

  test('apply waits until a running operation has finished', async () => {
    answers.applyAgent = () => ({ status: 202, body: operation([], { kind: 'apply', status: 'running' }) });
    let requests = 0;
    answers.getOperation = () => ({
      body: operation([result({ action: 'create', status: 'changed' })], {
        kind: 'apply',
        status: requests++ === 0 ? 'running' : 'succeeded',
      }),
    });
    const ran = await muster('apply', 'web-1', '-m', 'motd', '--yes');
    expect(ran.exit).toBe(0);
    expect(ran.stdout).toContain('Applied: 1 created, 0 updated, 0 removed, 0 unchanged');
  });

  test('exits with 1 after a failed apply, and prints the command that shows the script output', async () => {
    answers.applyAgent = () => ({
      body: operation([result({ status: 'failed', message: 'no' })], { kind: 'apply', status: 'failed' }),
    });
    const ran = await muster('apply', 'web-1', '-m', 'site', '--yes');
    expect(ran).toMatchObject({ exit: 1, stderr: '' });
    answers.applyAgent = () => ({
      body: operation([result({ type: 'script', status: 'failed' })], { kind: 'apply', status: 'failed' }),
    });
    expect((await muster('apply', 'web-1', '-m', 'site', '--yes')).stderr).toContain('muster operations show');
  });

  describe('an apply that the agent refuses because its plan is stale', () => {
    const plan_id = '01KAGZ4D3E5F6G7H8J9K0M1N2Q';
    const error = 'plan_stale: the machine has changed';
    /**
     * Runs an apply that fails with a stale plan, and responds to requests for that plan. The first response shows that
     * the apply has finished, so no other operation is read.
     */
    const apply = async (planAnswer: Answer) => {
      answers.applyAgent = () => ({ body: operation([], { kind: 'apply', status: 'failed', plan_id, error }) });
      answers.getOperation = ({ params }) => (params.operation_id === plan_id ? planAnswer : undefined);
      const ran = await muster('apply', 'web-1', '-m', 'motd', '--yes');
      expect(ran.exit).toBe(1);
      expect(sent('getOperation')?.params).toEqual({ operation_id: plan_id });
      return ran.stderr;
    };

    test('reports a stale plan with its time and the command that plans again', async () => {
      const plan = operation([], { operation_id: plan_id, created_at: 1_795_000_000 });
      expect(await apply({ body: plan })).toMatch(
        /error: the machine has changed\n {2}the plan was requested at 2026-11-18T11:06:40Z\nhint: .*Run the same command again without --plan or --plan-run/,
      );
    });

    test.each<[string, Answer]>([
      ['can no longer be read', { code: 'operation_not_found', detail: 'there is no operation' }],
      ['has a time that no clock can have', { body: operation([], { operation_id: plan_id, created_at: 1e300 }) }],
    ])('reports a stale plan even if the plan %s', async (_, answer) => {
      expect(await apply(answer)).toMatch(/error: the machine has changed\nhint: /);
    });
  });

  test('apply --queue does not wait for the apply to finish', async () => {
    answers.applyAgent = ({ headers }) => ({
      status: 202,
      body: operation([], { kind: 'apply', status: headers.prefer === 'respond-async' ? 'queued' : 'failed' }),
    });
    const ran = await muster('apply', 'web-1', '-m', 'motd', '--yes', '--queue', '--ttl', '12h');
    expect(ran).toMatchObject({ exit: 0 });
    expect(ran.stdout).toContain('queued');
    expect(sent('applyAgent')?.body).toEqual({ modules: ['motd'], ttl: 43_200 });
  });

  describe('plan and apply on several agents', () => {
    const fleet = ['web-2', 'web-1', 'web-10'].map((name, at) => agent({ name, node_id: `${at}c`.repeat(16) }));
    const outcome = (at: number, fields: Partial<Run['results'][number]> = {}): Run['results'][number] => ({
      node_id: fleet[at]?.node_id ?? '',
      name: fleet[at]?.name ?? null,
      operation_id: `01KAGZ4D3E5F6G7H8J9K0M1N0${at}`,
      status: 'succeeded',
      error: null,
      summary: operation(variety).summary,
      ...fields,
    });
    const runOf = (results: Run['results'], fields: Partial<Run> = {}): Run => ({
      run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
      assignment: null,
      kind: 'plan',
      status: results.every(({ status }) => status === 'succeeded') ? 'succeeded' : 'failed',
      started_at: 1_795_000_000,
      finished_at: 1_795_000_002,
      requested_by: '21fe31dfa154a261626bf854046fd227',
      results,
      ...fields,
    });
    const away = { operation_id: null, status: 'failed' as const, error: 'the agent is offline', summary: null };
    beforeEach(() => {
      answers.listAgents = () => ({ body: fleet });
      answers.getOperation = ({ params }) => ({
        body: operation(variety, {
          operation_id: params.operation_id ?? '',
          node_id: fleet[Number(params.operation_id?.at(-1))]?.node_id ?? '',
        }),
      });
    });

    test('prints equal plans once, and exits with 3 on request or 6 after a failure', async () => {
      answers.startRun = () => ({ status: 202, body: runOf([outcome(0), outcome(1)]) });
      const ran = await muster('plan', '-l', 'role=web', '-m', 'site', '--exit-code');
      expect(ran.exit, ran.stderr).toBe(3);
      expect(ran.stdout.match(/Plan for 2 agents: web-1, web-2 with site/g)).toHaveLength(1);
      expect(ran.stdout).toContain('Plan for 2 agents: 2 to change; 12 resources to create or change, 2 to remove');
      expect(sent('startRun')).toMatchObject({
        body: { kind: 'plan', modules: ['site'], node_ids: fleet.map(({ node_id }) => node_id) },
        headers: { prefer: 'respond-async' },
      });
      answers.startRun = () => ({ status: 202, body: runOf([outcome(0), outcome(2, away)]) });
      const partly = await muster('plan', 'web-2', 'web-10', '--exit-code', '--json');
      expect(partly.exit).toBe(6);
      expect(JSON.parse(partly.stdout).results).toHaveLength(2);
    });

    test('apply asks once, and applies exactly the plans with changes', async () => {
      const nothing = { summary: { total: 1, unchanged: 1, changed: 0, removed: 0, failed: 0, skipped: 0 } };
      answers.startRun = ({ body }) => ({
        status: 202,
        body:
          (body as { kind: string }).kind === 'plan'
            ? runOf([outcome(0), outcome(1, nothing), outcome(2, away)])
            : runOf([outcome(0)], { kind: 'apply' }),
      });
      const questions: string[] = [];
      const prompt = {
        interactive: true,
        ask: async () => '',
        secret: async () => '',
        choose: async () => null,
        confirm: async (question: string) => questions.push(question) > 0,
      };
      const args = ['apply', '--selector', 'role=web', '-m', 'site', '--canary', '1', '--batch', '25%'];
      const ran = await run(args, { ...env, NO_COLOR: '1' }, '', { columns: 80, prompt });
      expect(questions).toEqual(['Apply this on web-2? It removes 1 resource. 1 agent without a plan is left out.']);
      expect(server.seen.filter(({ route }) => route.id === 'startRun')[1]?.body).toEqual({
        kind: 'apply',
        modules: ['site'],
        canary: 1,
        batch: '25%',
        plan_run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
        node_ids: [fleet[0]?.node_id],
      });
      expect(ran.stdout).toContain('Nothing to do on web-1');
      expect(ran.stdout).toContain('! web-10: the agent is offline');
      expect(ran.stdout).toContain('Applied on 1 agent in 2s: 1 succeeded');
      // The agent whose plan failed counts as failed.
      expect(ran.exit).toBe(6);
    });

    test('prints failed resources with the reason and their last lines of output', async () => {
      const failed = result({ type: 'script', identity: 'deploy', id: 'deploy', status: 'failed', message: 'exit 2' });
      answers.startRun = () => ({
        status: 202,
        body: runOf([outcome(0), outcome(1, { status: 'failed' })], { kind: 'apply', status: 'halted' }),
      });
      answers.getOperation = () => ({ body: operation([failed], { kind: 'apply', status: 'failed' }) });
      answers.getOperationOutput = () => ({
        body: {
          operation_id: 'x',
          output: {
            'site/deploy': {
              stdout: 'one\n',
              stderr: 'a\nb\nc\n\u001b[2Jd\ne\nno disk\n',
              exit_code: 2,
              truncated: false,
            },
          },
        },
      });
      const ran = await muster('apply', 'web-1', 'web-2', '-m', 'site', '--yes', '--max-failures', '0');
      expect(ran.exit).toBe(6);
      expect(ran.stdout).toContain('web-1\n  script deploy: exit 2\n    b\n    c\n    \\x1b[2Jd\n    e\n    no disk\n');
      expect(ran.stdout).toContain('Applied on 2 agents in 2s: 1 succeeded, 1 failed');
      expect(ran.stdout).toContain('The run was halted');
      expect(ran.stderr).toContain('muster runs show 01KAGZ5R3E5F6G7H8J9K0M1N2P');
    });

    test('prints the reason of a failed agent before skipped agents, and counts those that it does not list', async () => {
      const failed = result({ type: 'script', identity: 'deploy', id: 'deploy', status: 'failed', message: 'exit 2' });
      const other = { operation_id: null, summary: null };
      const error = 'not tried: the run was halted, because a canary did not succeed';
      const skipped = Array.from({ length: 30 }, (_, at) => ({
        ...outcome(0),
        ...{ ...other, name: `app-${at}`, node_id: `app-${at}`, status: 'cancelled' as const, error },
      }));
      const offline = Array.from({ length: 90 }, (_, at) => ({
        ...outcome(0),
        ...{
          ...other,
          name: `db-${at}`,
          node_id: `db-${at}`,
          status: 'failed' as const,
          error: 'the agent is offline',
        },
      }));
      answers.startRun = () => ({
        status: 202,
        body: runOf([...skipped, ...offline, outcome(1, { status: 'failed' })], { kind: 'apply', status: 'halted' }),
      });
      answers.getOperation = () => ({ body: operation([failed], { kind: 'apply', status: 'failed' }) });
      answers.getOperationOutput = () => ({ body: { operation_id: 'x', output: {} } });
      const { stdout } = await muster('apply', 'web-1', 'web-2', '-m', 'site', '--yes', '--canary', '1');
      expect(stdout).toContain('  script deploy: exit 2\n');
      expect(stdout).not.toContain('app-');
      expect(stdout).toContain('and 11 more: muster runs show 01KAGZ5R3E5F6G7H8J9K0M1N2P\n');
      expect(stdout).toContain('91 failed, 30 skipped');
      expect(stdout).toContain('Halted because a canary did not succeed. 30 agents were skipped.');
    });

    test('drift --check compares several machines, prints those that have drifted, and continues after an offline one', async () => {
      const moved = result({
        action: 'update',
        status: 'would_change',
        changes: [{ field: 'mode', from: '0', to: '1' }],
      });
      answers.checkDrift = ({ params }) =>
        params.node_id === fleet[2]?.node_id
          ? { code: 'agent_not_connected', detail: 'web-10 is offline' }
          : {
              body: {
                ...drift(params.node_id === fleet[0]?.node_id ? [moved] : []),
                node_id: params.node_id,
                status: params.node_id === fleet[0]?.node_id ? 'drifted' : 'in_sync',
              },
            };
      const ran = await muster('drift', '-l', 'role=web', '--check', '--exit-code');
      expect(ran.exit).toBe(6);
      expect(ran.stdout).toContain('web-2 has drifted');
      expect(ran.stdout).not.toContain('web-1');
      expect(ran.stdout).toContain('3 machines: 1 drifted, 1 in sync, 1 could not be compared');
      expect(ran.stderr).toContain('web-10 is offline');
      const two = await muster('drift', 'web-2', 'web-1', '--exit-code', '--json');
      expect(two.exit).toBe(3);
      expect(JSON.parse(two.stdout).map(({ status }: { status: string }) => status)).toEqual(['drifted', 'in_sync']);
      expect((await muster('drift', '--all')).exit).toBe(2);
      expect((await muster('drift', 'web-1', 'web-2', '--latest')).exit).toBe(2);
    });

    test('refuses unconfirmed removals without -m, and refuses pacing options for a single agent', async () => {
      answers.startRun = () => ({ status: 202, body: runOf([outcome(0), outcome(1)]) });
      const ran = await muster('apply', 'web-1', 'web-2', '--yes');
      expect(ran.exit).toBe(1);
      expect(ran.stderr).toContain('would remove 2 resources on 2 agents; nothing was changed');
      expect(server.seen.filter(({ route }) => route.id === 'startRun')).toHaveLength(1);
      const keeping = { summary: { total: 1, unchanged: 1, changed: 0, removed: 0, failed: 0, skipped: 0 } };
      answers.startRun = ({ body }) => ({
        status: 202,
        body:
          (body as { kind: string }).kind === 'plan'
            ? runOf([outcome(0, keeping), outcome(1, keeping), outcome(2, away)])
            : runOf([outcome(0), outcome(1)], { kind: 'apply' }),
      });
      server.seen.length = 0;
      const refused = await muster('apply', 'web-1', 'web-2', 'web-10', '--yes');
      expect(refused.exit).toBe(6);
      expect(refused.stderr).toContain('web-10 failed: the agent is offline');
      expect(refused.stderr).toContain('Left out 1 agent: without a plan, removals there are unknown.');
      expect(server.seen.filter(({ route }) => route.id === 'startRun')[1]?.body).toEqual({
        kind: 'apply',
        modules: [],
        plan_run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
        node_ids: [fleet[0]?.node_id, fleet[1]?.node_id],
      });
      answers.startRun = () => ({ status: 202, body: runOf([outcome(2, away)]) });
      const none = await muster('apply', 'web-2', 'web-10', '--yes');
      expect(none).toMatchObject({ exit: 1, stdout: '' });
      expect(none.stderr).toContain('no plan succeeded, so nothing was applied');
      answers.getAgent = () => ({ body: fleet[1] });
      expect((await muster('apply', 'web-1', '-m', 'a', '--yes', '--canary', '1')).exit).toBe(2);
      expect((await muster('apply', '-l', 'role=web', '-m', 'a', '--yes', '--batch', '0')).exit).toBe(2);
    });
  });

  test('drift prints the changed fields, and exits with 3 on request', async () => {
    const record = drift([
      result({ action: 'update', status: 'would_change', changes: [{ field: 'mode', from: '0600', to: '0644' }] }),
    ]);
    answers.checkDrift = () => ({ body: record });
    answers.getOperation = ({ params }) =>
      params.operation_id === record.snapshot_operation_id
        ? { body: operation([], { kind: 'apply', modules: ['w1', 'w2'] }) }
        : undefined;
    answers.listModules = () => ({
      body: ['w1', 'w2'].map((name) => ({ name, uploaded_at: 1, uploaded_by: 'x' })),
    });
    const ran = await muster('drift', 'web-1');
    expect(ran.exit).toBe(0);
    expect(ran.stdout).toContain('mode  0600, expected 0644');
    expect(ran.stderr).toContain('Fix: muster apply web-1 -m w1 -m w2\n');
    // The command omits modules that an assignment enforces.
    const of = (mode: string, ...modules: string[]) => ({ name: mode, mode, modules });
    answers.listAssignments = ({ route }) => {
      const [example] = route.example.answer as object[];
      return { body: [of('enforce', 'w1', 'w3'), of('audit', 'w2')].map((each) => ({ ...example, ...each })) };
    };
    answers.getAssignment = ({ route, params }) => ({
      body: {
        ...(route.example.answer as object),
        ...of(params.name as string, 'w1', 'w3'),
        matches: [record.node_id],
      },
    });
    expect((await muster('drift', 'web-1')).stderr).toContain('Fix: muster apply web-1 -m w2\n');
    expect((await muster('drift', 'web-1', '--exit-code')).exit).toBe(3);
    answers.checkDrift = () => ({ body: drift([]) });
    expect((await muster('drift', 'web-1', '--exit-code')).exit).toBe(0);
    answers.checkDrift = () => ({ code: 'nothing_applied', detail: 'nothing was applied yet' });
    expect((await muster('drift', 'web-1')).exit).toBe(1);
  });

  test.each([
    ['listDrift', ['drift', 'web-1', '--history']],
    ['listLatestDrift', ['drift']],
    ['listRuns', ['runs', 'list']],
    ['listModuleRevisions', ['modules', 'history', 'motd']],
    ['listTerminals', ['terminal', 'list']],
  ] as const)('reads more pages of %s until it has as many items as --limit requests', async (id, verb) => {
    const { example, path } = allRoutes.find((each) => each.id === id) as Route;
    const [item] = example.answer as [unknown];
    let pages = 0;
    answers[id] = ({ params, query }) => {
      pages++;
      const filled = path.replace(/\{\w+\}/, () => String(Object.values(params)[0]));
      return { body: [item, item], next: `/api/v1${filled}?limit=${query.limit}&offset=${pages * 2}` };
    };
    const ran = await muster(...verb, '--limit', '5', '--json');
    expect(JSON.parse(ran.stdout), ran.stderr).toHaveLength(5);
    expect(pages).toBe(3);
  });

  test('drift lists the results of earlier checks without running a new check', async () => {
    const moved = result({
      action: 'update',
      status: 'would_change',
      changes: [{ field: 'mode', from: 'a', to: 'b' }],
    });
    const records = [drift([moved], { trigger: 'watch' }), drift([])];
    answers.listLatestDrift = () => ({ body: records });
    answers.listDrift = answers.listLatestDrift;
    answers.latestDrift = () => ({ body: records[0] });
    const all = await muster('drift', '--status', 'drifted', '--filter', 'role=web', '--exit-code');
    expect(all.exit).toBe(3);
    expect(all.stdout).toMatch(/web-1 +drifted .* watch +\/etc\/motd \(mode\)\n/);
    expect(sent('listLatestDrift')?.query).toMatchObject({ status: 'drifted', filter: 'role=web', limit: '50' });
    answers.listLatestDrift = () => ({ body: records.toReversed() });
    expect((await muster('drift')).stdout).toMatch(/drifted .*\n.* in sync/);
    const history = await muster('drift', 'web-1', '--history', '--limit', '2');
    expect(history.stdout).toMatch(/drifted .*\n.* in sync/);
    expect(JSON.parse((await muster('drift', 'web-1', '--history', '--json')).stdout)).toEqual(records);
    expect((await muster('drift', 'web-1', '--latest')).stdout).toContain('mode  a, expected b');
    answers.latestDrift = () => ({ body: null });
    expect(await muster('drift', 'web-1', '--latest', '--json')).toMatchObject({ exit: 0, stdout: 'null\n' });
    expect(routes()).not.toContain('checkDrift');
    for (const wrong of [['--latest'], ['web-1', '--filter', 'a=b'], ['web-1', '--latest', '--history']])
      expect((await muster('drift', ...wrong)).exit).toBe(2);
  });

  test('lists operations with agent names, and shows script output', async () => {
    const listed = await muster('operations', 'list', '--agent', 'web-1', '--status', 'succeeded', '--limit', '5');
    expect(listed.stdout).toMatch(/01KAGZ4D3E5F6G7H8J9K0M1N2P +web-1 +apply +succeeded/);
    expect(sent('listAgentOperations')?.params).toEqual({ node_id: '3f8c2b0a9d7e41568c1b2a3d4e5f6071' });
    expect(sent('listAgentOperations')?.query).toEqual({
      status: 'succeeded',
      limit: '5',
    });
    expect((await muster('operations', 'list', '--limit', 'x')).exit).toBe(2);
    server.seen.length = 0;
    for (const status of ['canceled', 'cancelled'])
      expect((await muster('operations', 'list', '--status', status)).exit).toBe(0);
    expect(server.seen.filter(({ route }) => route.id === 'listOperations').map(({ query }) => query.status)).toEqual([
      'cancelled',
      'cancelled',
    ]);
    expect((await muster('operations', 'list', '--status', 'bad')).exit).toBe(2);
    const shown = await muster('operations', 'show', '01kagz4d3e5f6g7h8j9k0m1n2p', '--output');
    expect(shown.stdout).toContain('site/deploy exit 0\ndeployed');
    expect(
      JSON.parse((await muster('operations', 'show', '01KAGZ4D3E5F6G7H8J9K0M1N2P', '--json')).stdout),
    ).toMatchObject({
      kind: 'apply',
    });
    expect((await muster('operations', 'show', 'n2p')).stdout).toContain('01KAGZ4D3E5F6G7H8J9K0M1N2P');
    expect((await muster('operations', 'show', 'zzz')).stderr).toContain('muster operations list');
  });

  test('operations output --follow prints new output until the operation finishes, and exits with the operation’s result', async () => {
    const said = [
      { stdout: 'one\ntw', stderr: '', exit_code: null, truncated: false, running: true as const },
      { stdout: 'one\ntwo\n', stderr: 'oh\u001b[2J\n', exit_code: null, truncated: false, running: true as const },
      { stdout: 'one\ntwo\nthree\n', stderr: 'oh\u001b[2J\n', exit_code: 3, truncated: false },
    ];
    let requests = -1;
    answers.getOperation = () => ({
      body: operation([], { kind: 'apply', status: ++requests < 2 ? 'running' : 'failed' }),
    });
    answers.getOperationOutput = () => ({
      body: { operation_id: '01KAGZ4D3E5F6G7H8J9K0M1N2P', output: { 'site/deploy': said[Math.min(requests, 2)] } },
    });
    const id = '01KAGZ4D3E5F6G7H8J9K0M1N2P';
    const ran = await muster('operations', 'output', id, '--follow');
    expect(ran.stdout).toBe('site/deploy\none\ntwo\noh\\x1b[2J\nthree\nexit 3\n');
    expect(ran.exit).toBe(1);
    requests = -1;
    expect((await muster('operations', 'output', id)).stdout).toBe('site/deploy\none\ntw');
    requests = 1;
    const followed = await muster('operations', 'output', id, '--json', '--follow');
    expect(JSON.parse(followed.stdout)).toEqual({ operation_id: id, output: { 'site/deploy': said[2] } });
    said[2] = { stdout: 'no newline', stderr: 'of its own', exit_code: 3, truncated: false };
    expect((await muster('operations', 'output', id)).stdout).toBe('site/deploy\nno newline\nof its own\nexit 3\n');
  });

  test('cancels operations, and reports if an operation must finish its current resource first', async () => {
    expect((await muster('operations', 'cancel', 'n2p')).stdout).toBe('Canceled 01KAGZ4D3E5F6G7H8J9K0M1N2P.\n');
    answers.cancelOperation = () => ({ status: 202, body: operation([], { status: 'running' }) });
    expect((await muster('operations', 'cancel', 'n2p')).stdout).toMatch(
      /^Canceling \S+\. It stops after its current resource\.\n$/,
    );
    answers.cancelOperation = () => ({ code: 'operation_finished', detail: 'it has ended' });
    expect((await muster('operations', 'cancel', 'n2p')).exit).toBe(1);
  });
});

describe('assignments and runs', () => {
  test('lists and shows assignments', async () => {
    expect((await muster('assignments', 'list')).stdout).toMatch(/base +enforce +role=web +motd/);
    expect((await muster('assignments', 'show', 'base')).stdout).toContain('matches     web-1\n');
    expect((await muster('runs', 'list')).stdout).toMatch(/01KAGZ5R3E5F6G7H8J9K0M1N2P +base +apply +succeeded/);
    expect((await muster('runs', 'show', 'n2p')).stdout).toMatch(/web-1 +succeeded +01KAGZ4D\w+ +1 changed/);
    answers.getAssignment = ({ route }) => ({ body: { ...(route.example.answer as object), selector: '' } });
    expect((await muster('assignments', 'show', 'base')).stdout).toContain('matches no agent');
    answers.getAssignment = () => ({ code: 'assignment_not_found', detail: 'no such assignment' });
    expect((await muster('assignments', 'show', 'bsae')).stderr).toContain('Did you mean base?');
    answers.listModules = () => ({ body: [{ name: 'motd', uploaded_at: 1, uploaded_by: 'x' }] });
    answers.createAssignment = () => ({ code: 'unknown_module', detail: 'there is no module "modt"' });
    const made = await muster('assignments', 'create', 'x', '-m', 'motd', '-m', 'modt', '--selector', 'a=b');
    expect(made.stderr).toContain('Did you mean motd?');
  });

  test('explains only once why a run was halted, and shortens IDs on a terminal with 80 columns', async () => {
    const skipped = (name: string) => ({
      ...{ node_id: name, name, operation_id: null, status: 'cancelled' as const, summary: null },
      error: 'not tried: the run was halted, because a canary did not succeed',
    });
    answers.getRun = ({ route }) => {
      const example = route.example.answer as Run;
      const failed = { ...example.results[0]!, name: 'web-1', status: 'failed' as const, error: 'a resource failed' };
      return { body: { ...example, status: 'halted', results: [skipped('web-10'), skipped('web-2'), failed] } };
    };
    const prompt = { interactive: true } as Prompter;
    const args = ['runs', 'show', '01KAGZ5R3E5F6G7H8J9K0M1N2P'];
    const { stdout } = await run(args, { ...env, NO_COLOR: '1' }, '', { columns: 80, prompt });
    expect(stdout.match(/a canary did not succeed/g)).toHaveLength(1);
    expect(stdout).toContain('Halted because a canary did not succeed. 2 agents were skipped.');
    expect(stdout).toMatch(/web-1 +failed +9K0M1N2P +a resource failed\nweb-2 +skipped +- +-\nweb-10 +skipped +- +-/);
  });

  test('describes in words that an agent’s plan in a run is stale', async () => {
    answers.getRun = ({ route }) => {
      const example = route.example.answer as Run;
      const error = 'plan_stale: the secret x has changed since the plan';
      const refused = { operation_id: null, status: 'failed' as const, error, summary: null };
      return { body: { ...example, status: 'failed', results: [{ ...example.results[0]!, ...refused }] } };
    };
    const { stdout } = await muster('runs', 'show', '01KAGZ5R3E5F6G7H8J9K0M1N2P');
    expect(stdout).toMatch(/ failed +- +the plan is stale: the secret x has changed since the plan\n/);
  });

  test('creates an assignment from modules and a selector, with parameters from a file', async () => {
    const withoutSelector = await muster('assignments', 'create', 'base', '-m', 'motd');
    expect(withoutSelector.exit).toBe(2);
    expect(withoutSelector.stderr).toContain('--selector');
    const args = ['assignments', 'create', 'base', '-m', 'motd', '--selector', 'role=web', '--audit'];
    const made = await run([...args, '--parameters', '-'], env, '{"motd":{"greeting":"hi"}}');
    expect(made.exit, made.stderr).toBe(0);
    expect(sent('createAssignment')?.body).toEqual({
      name: 'base',
      modules: ['motd'],
      selector: 'role=web',
      mode: 'audit',
      parameters: { motd: { greeting: 'hi' } },
    });
    expect((await run([...args, '--parameters', '-'], env, '{')).exit).toBe(2);
    expect((await muster('assignments', 'remove', 'base', '--yes')).stdout).toBe('Removed base.\n');
  });

  const entry = { node_id: 'ab'.repeat(16), name: 'web-1', operation_id: null, error: null };
  const runOf = (status: string, ...results: object[]) => ({
    run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
    assignment: 'base',
    kind: 'plan',
    status,
    started_at: 1_795_000_000,
    finished_at: status === 'running' ? null : 1_795_000_001,
    requested_by: 'x',
    results: results.map((result) => ({ ...entry, ...result })),
  });
  const summary = { total: 3, unchanged: 1, changed: 0, removed: 2, failed: 0, skipped: 0 };

  test('assignments plan waits for the run, and exits with 3 on request if there are changes', async () => {
    answers.planAssignment = () => ({ status: 202, body: runOf('running') });
    answers.getRun = () => ({ body: runOf('succeeded', { status: 'succeeded', summary }) });
    expect(await muster('assignments', 'plan', 'base')).toMatchObject({ exit: 0 });
    expect((await muster('assignments', 'plan', 'base', '--exit-code')).exit).toBe(3);
    answers.getRun = () => ({
      body: runOf('failed', { status: 'succeeded', summary }, { status: 'failed', summary: null, error: 'away' }),
    });
    const partly = await muster('assignments', 'plan', 'base');
    expect(partly.exit).toBe(6);
    expect(partly.stdout).toContain('away');
  });

  test('runs follow waits until the run has finished, and exits with its result', async () => {
    const [good, bad] = [
      { status: 'succeeded', summary },
      { status: 'failed', summary: null, error: 'away' },
    ];
    const runs = [runOf('running', good, { status: 'queued', summary: null }), runOf('failed', good, bad)];
    answers.getRun = () => ({ body: runs.length > 1 ? runs.shift() : runs[0] });
    const partly = await muster('runs', 'follow', '01KAGZ5R3E5F6G7H8J9K0M1N2P');
    expect(partly.exit, partly.stderr).toBe(6);
    expect(partly.stdout).toContain('away');
    const json = await muster('runs', 'follow', '01KAGZ5R3E5F6G7H8J9K0M1N2P', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ status: 'failed' });
    runs[0] = runOf('cancelled', {
      ...{ operation_id: '01KAGZ5R3E5F6G7H8J9K0M1N2Q', status: 'cancelled', summary: null },
    });
    const canceled = await muster('runs', 'follow', '01KAGZ5R3E5F6G7H8J9K0M1N2P');
    expect(canceled.exit).toBe(1);
    expect(canceled.stdout).toMatch(/on 1 agent: canceled\n[\s\S]*web-1 +canceled/);
    expect(canceled.stdout).not.toContain('cancelled');
  });

  test('assignments apply requires confirmation or --yes', async () => {
    expect((await muster('assignments', 'apply', 'base')).exit).toBe(2);
    expect(server.seen).toEqual([]);
    expect((await muster('assignments', 'apply', 'base', '--yes')).exit).toBe(0);
    expect((await muster('assignments', 'apply', 'base', '--yes', '--queue', '--ttl', '1h')).stderr).toContain(
      'runs show',
    );
    server.seen.splice(0, server.seen.length, ...server.seen.filter(({ route }) => route.id === 'applyAssignment'));
    expect((await muster('assignments', 'apply', 'base', '--yes', '--remove')).exit).toBe(0);
    expect(routes()).not.toContain('getAssignment');
    // The apply is bound to the checked plan. Window-only assignments are an exception, because their plan is for the
    // next window.
    expect(server.seen.filter(({ route }) => route.id === 'applyAssignment').map(({ body }) => body)).toEqual([
      { plan_run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P' },
      { offline: 'queue', ttl: 3600 },
      {},
    ]);
    server.seen.length = 0;
    answers.getAssignment = ({ route }) => ({ body: { ...(route.example.answer as object), window_only: true } });
    expect((await muster('assignments', 'apply', 'base', '--yes')).exit).toBe(0);
    expect(sent('applyAssignment')?.body).toEqual({});
  });

  test('prints a note, without failing, if the selector of an assignment matches no agent', async () => {
    answers.planAssignment = () => ({ body: runOf('succeeded') });
    answers.applyAssignment = () => ({ body: { ...runOf('succeeded'), kind: 'apply' } });
    const said = 'The selector of base matches no agent: there is nothing to';
    for (const verb of [['plan'], ['apply', '--yes'], ['apply', '--yes', '--remove']]) {
      const ran = await muster('assignments', ...verb, 'base');
      expect(ran.exit, ran.stderr).toBe(0);
      expect(ran.stdout).toBe(`${said} ${verb[0]}.\n`);
    }
    expect((await muster('assignments', 'plan', 'base', '--exit-code')).exit).toBe(0);
    // An explicit selector that matches no agent is probably a mistake.
    answers.listAgents = () => ({ body: [] });
    const typed = await muster('apply', '-l', 'role=wbe', '-m', 'motd', '--yes');
    expect(typed).toMatchObject({ exit: 1, stdout: '' });
    expect(typed.stderr).toContain('no approved agent matches "role=wbe"');
    expect(routes()).not.toContain('startRun');
  });

  test('asks before an apply, and states the number of removals in the question', async () => {
    answers.planAssignment = () => ({ body: runOf('succeeded', { status: 'succeeded', summary }) });
    const questions: string[] = [];
    const prompt: Prompter = {
      interactive: true,
      secret: async () => '',
      choose: async () => null,
      confirm: async (question) => questions.push(question) < 0,
      ask: async () => '',
    };
    const ran = await run(['assignments', 'apply', 'base'], { ...env, NO_COLOR: '1' }, '', { columns: 80, prompt });
    expect(ran.exit).toBe(1);
    expect(questions).toEqual(['Apply base on 1 agent? It removes 2 resources.']);
    expect(routes()).not.toContain('applyAssignment');
  });
});

describe('applying and planning an assignment', () => {
  const example =
    (id: string) =>
    ({ route }: { route: { example: { answer?: unknown } } }) => ({
      body: { ...(route.example.answer as object), run_id: id },
    });
  const removing =
    (removed: number) =>
    ({ route }: { route: { example: { answer?: unknown } } }) => {
      const run = route.example.answer as { results: { summary: object }[] };
      const results = run.results.map((result) => ({ ...result, summary: { ...result.summary, removed } }));
      return { body: { ...run, results } };
    };

  test('sends the pacing options to the orchestrator', async () => {
    const paced = ['--canary', '2', '--batch', '25%', '--max-failures', '0', '--offline', 'queue', '--ttl', '1h'];
    expect((await muster('assignments', 'apply', 'base', '--yes', ...paced)).exit).toBe(0);
    expect(sent('applyAssignment')?.body).toEqual({
      canary: 2,
      batch: '25%',
      max_failures: 0,
      offline: 'queue',
      ttl: 3600,
    });
    for (const wrong of [
      ['--batch', '0%'],
      ['--batch', 'x'],
      ['--canary', '0'],
      ['--offline', 'maybe'],
      ['--ttl', '1h'],
    ])
      expect((await muster('assignments', 'apply', 'base', '--yes', ...wrong)).exit, wrong.join(' ')).toBe(2);
  });

  test('requires confirmation for removals', async () => {
    answers.planAssignment = removing(2);
    const ran = await muster('assignments', 'apply', 'base', '--yes');
    expect(ran.exit).toBe(1);
    expect(ran.stderr).toContain('To remove them, add --remove');
    expect(ran.stderr).not.toContain('--yes');
    expect(routes()).not.toContain('applyAssignment');
    expect((await muster('assignments', 'apply', 'base', '--yes', '--remove')).exit).toBe(0);
    expect(routes()).toContain('applyAssignment');
  });

  test('applies exactly the plans of the run in --plan-run', async () => {
    const planned = '01KAGZ5R3E5F6G7H8J9K0M1N2P';
    answers.getRun = example(planned);
    expect((await muster('assignments', 'apply', 'base', '--yes', '--plan-run', planned)).exit).toBe(0);
    expect(sent('applyAssignment')?.body).toEqual({ plan_run_id: planned });
    expect((await muster('apply', 'web-1', '--yes', '--plan', '01KAGZ4D3E5F6G7H8J9K0M1N2P')).exit).toBe(0);
    expect(sent('applyAgent')?.body).toEqual({
      modules: [],
      offline: 'report',
      plan_id: '01KAGZ4D3E5F6G7H8J9K0M1N2P',
    });
    expect((await muster('apply', 'web-1', '--yes', '--plan', 'x', '-m', 'motd')).exit).toBe(2);
  });

  test('retries the failed agents of a run with the modules of the run', async () => {
    const failed = {
      name: null,
      operation_id: operation([]).operation_id,
      status: 'failed',
      error: null,
      summary: null,
    };
    const run_id = '01KAGZ5R3E5F6G7H8J9K0M1N2P';
    const ended = (fields: Partial<Run>) => {
      answers.getRun = ({ route }) => {
        const example = route.example.answer as Run;
        const results = [
          { ...failed, node_id: 'a' },
          { ...failed, node_id: 'b', status: 'succeeded' },
          { ...failed, node_id: 'c', operation_id: null, status: 'cancelled' },
          { ...failed, node_id: 'gone' },
        ];
        return { body: { ...example, run_id, assignment: null, kind: 'apply', status: 'failed', results, ...fields } };
      };
    };
    ended({});
    const known = (...ids: string[]) => {
      answers.listAgents = () => ({ body: ids.map((node_id) => agent({ node_id, name: node_id })) });
    };
    known('a', 'b', 'c');
    const planned = [
      { ...failed, node_id: 'a', status: 'succeeded', summary: { ...operation(variety).summary, removed: 2 } },
    ];
    const plan = { run_id, assignment: null, kind: 'plan', status: 'succeeded' } as const;
    answers.startRun = ({ body, route }) =>
      (body as { kind: string }).kind === 'plan'
        ? { body: { ...(route.example.answer as Run), ...plan, results: planned } }
        : undefined;
    answers.listAudit = ({ route }) => {
      const page = route.example.answer as { events: object[] };
      const [event] = page.events;
      const started = {
        ...event,
        target: { type: 'run', id: run_id },
        metadata: { modules: ['motd'], canary: 0, batch: 2, max_failures: 1 },
      };
      return { body: { ...page, events: [started] } };
    };
    const started = () => server.seen.filter(({ route }) => route.id === 'startRun').map(({ body }) => body);
    expect((await muster('runs', 'retry', run_id)).exit).toBe(2);
    // Removing resources needs --remove, unless the operator typed the modules.
    const refused = await muster('runs', 'retry', run_id, '--yes');
    expect(refused.stderr).toContain('without -m this would remove 2 resources on 1 agent; nothing was changed');
    expect(started()).toEqual([{ kind: 'plan', modules: ['motd'], node_ids: ['a'] }]);
    server.seen.length = 0;
    const allowed = await muster('runs', 'retry', run_id, '--yes', '--remove', '--batch', '3');
    expect(allowed.stderr).toContain('Left out 1 agent no longer approved.');
    expect(sent('listAgents')?.query).toEqual({ status: 'approved' });
    const pace = { batch: 2, max_failures: 1 };
    expect(started()).toEqual([{ kind: 'apply', modules: ['motd'], node_ids: ['a'], ...pace, batch: 3 }]);
    await muster('runs', 'retry', run_id, '--yes', '--include-skipped', '-m', 'nginx');
    expect(started()[1]).toEqual({ kind: 'apply', modules: ['nginx'], node_ids: ['a', 'c'], ...pace });
    known('b');
    expect((await muster('runs', 'retry', run_id, '--yes')).stderr).toContain(
      'no agent can be retried: 2 agents no longer approved',
    );
    known('a');
    // A halted run has ended only when its open operations have.
    ended({ status: 'halted', finished_at: null });
    expect((await muster('runs', 'retry', run_id, '--yes')).stderr).toContain(`run ${run_id} has not ended`);
    expect(started()).toHaveLength(2);
    ended({});
    answers.listAudit = ({ route }) => ({ body: { ...(route.example.answer as object), events: [] } });
    expect((await muster('runs', 'retry', run_id, '--yes')).stderr).toContain('no longer contains the modules');
    const unpaced = await muster('runs', 'retry', run_id, '--yes', '-m', 'nginx');
    expect(unpaced.stderr).toContain('The audit log no longer contains the pace of this run.');
    expect(started()[2]).toEqual({ kind: 'apply', modules: ['nginx'], node_ids: ['a'] });
  });

  test('lists agents by connection, by sync state, and in an order', async () => {
    const other = (name: string, connected: boolean) => agent({ name, node_id: name, connected });
    answers.listAgents = () => ({ body: [other('one', true), other('two', false), other('three', false)] });
    answers.listReconcile = () => ({ body: [] });
    answers.matchSelector = ({ route }) => ({ body: { ...(route.example.answer as object), matches: ['two'] } });
    const names = async (...words: string[]) =>
      (JSON.parse((await muster('agents', 'list', '--json', ...words)).stdout) as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await names('--status', 'offline')).toEqual(['two', 'three']);
    expect(await names('--status', 'connected')).toEqual(['one']);
    expect(await names('--status', 'offline', '--limit', '1')).toEqual(['two']);
    expect(await names('--sync', 'never-applied')).toEqual(['two']);
    expect(await names('--sync', 'in-sync')).toEqual(['one', 'three']);
    expect(await names('--sync', 'outdated')).toEqual([]);
    await muster('agents', 'list', '--sort', '-last_seen_at');
    expect(server.seen.findLast(({ route }) => route.id === 'listAgents')?.query).toEqual({ sort: '-last_seen_at' });
    expect((await muster('agents', 'list', '--status', 'pending', '--sync', 'outdated')).exit).toBe(2);
  });

  test('cancels runs, and lists them by status', async () => {
    expect((await muster('runs', 'cancel', '01KAGZ5R3E5F6G7H8J9K0M1N2P')).stdout).toBe(
      'Canceled 01KAGZ5R3E5F6G7H8J9K0M1N2P.\n',
    );
    await muster('runs', 'list', '--status', 'halted', '--assignment', 'base');
    expect(sent('listRuns')?.query).toEqual({ limit: '50', status: 'halted', assignment: 'base' });
    expect((await muster('runs', 'list', '--status', 'odd')).exit).toBe(2);
  });
});

describe('the program', () => {
  test('status needs no key, and exits with 1 if the orchestrator is degraded', async () => {
    expect((await run(['status', '--key-file', '/nonexistent'], env)).exit).toBe(0);
    answers.getStatus = ({ route }) => ({ body: { ...(route.example.answer as object), status: 'degraded' } });
    expect((await muster('status')).exit).toBe(1);
  });

  test.each([
    [['stauts'], 'status'],
    [['agents', 'lst'], 'list'],
    [['plan'], 'agent'],
    [['plan', 'web-1', '--exitcode'], '--exit-code'],
    [['status', '--url', 'ftp://x'], 'https'],
    [['orchestrator'], 'launcher'],
  ])('treats %j as a usage error: exit code 2, nothing on stdout, and a hint', async (args, hint) => {
    const ran = await muster(...args);
    expect(ran).toMatchObject({ exit: 2, stdout: '' });
    expect(ran.stderr).toContain(hint);
  });

  test.each([
    [['agent', 'list'], 'listAgents'],
    [['agents'], 'listAgents'],
    [['agents', 'ls'], 'listAgents'],
    [['metrics'], 'latestSamples'],
    [['tag'], 'listTags'],
    [['settings'], 'getSettings'],
    [['notifications'], 'listNotifications'],
    [['operators'], 'listOperators'],
    [['state', 'web-1'], 'getState'],
    [['windows'], 'listWindows'],
    [['maintenance', 'create', 'updates', '--for', '2h'], 'createWindow'],
    [['enrolment-token', 'add'], 'createEnrolmentToken'],
    [['audit', 'retention'], 'getAuditRetention'],
  ])('given muster %j, requests %s', async (args, id) => {
    expect((await muster(...args)).exit).toBe(0);
    expect(routes()).toContain(id);
  });

  test('shows the fleet, its issues, and five commands for muster without arguments on a terminal', async () => {
    const prompt = { interactive: true } as Prompter;
    const here = { ...env, NO_COLOR: '1' };
    const { exit, stdout } = await run([], here, '', { columns: 80, prompt });
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^https:\/\/127\.0\.0\.1:\d+\n\nagents +412 approved/);
    expect(stdout).toContain('\nNeeds attention\n');
    expect(stdout).toMatch(/^ {2}web-1 +apply failed/m);
    expect(stdout).toContain('2 agents wait for approval: muster agents list --status pending');
    expect(stdout.split('\nCommands\n')[1]?.trim().split('\n')).toHaveLength(5);
    for (const line of stdout.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(80);
    // If no orchestrator is known, or in a pipe, the program prints help.
    expect((await run([], home.env, '', { columns: 80, prompt })).stdout).toContain('Usage: muster');
    expect((await run([], env)).stdout).toContain('Usage: muster');
  });

  test('requires a terminal for --watch, and starts no checks with drift --watch', async () => {
    expect((await muster('agents', '--watch')).stderr).toContain('--watch needs a terminal');
    server.seen.length = 0;
    const drifting = await run(['drift', 'web-1', '--watch'], env, '', {
      columns: 80,
      prompt: { interactive: true } as Prompter,
    });
    expect(drifting).toMatchObject({ exit: 2, stderr: expect.stringContaining('--watch starts no checks') });
    expect(routes()).not.toContain('checkDrift');
  });

  test('prints help on stdout, with an example, and exits with 0', async () => {
    for (const args of [[], ['--help'], ['help'], ['plan', '--help'], ['help', 'plan'], ['help', 'agents', 'tag']]) {
      const ran = await muster(...args);
      expect(ran, args.join(' ')).toMatchObject({ exit: 0, stderr: '' });
      expect(ran.stdout).toContain('$ muster ');
    }
    expect((await muster('--version')).stdout).toBe(
      `${JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')).version}\n`,
    );
  });

  test('ends the help of each command with one line about global options', async () => {
    for (const args of [['agents'], ['agents', 'list'], ['plan']])
      expect((await muster(...args, '--help')).stdout).toMatch(
        /\nGlobal options, such as --json and --profile: muster --help\n$/,
      );
    expect((await muster('--help')).stdout).toContain('--insecure-skip-verify');
  });

  test('suggests https if a TLS port is addressed with plain HTTP', async () => {
    const ran = await run(['status', '--url', server.url.replace('https:', 'http:')], env);
    expect(ran.exit).toBe(5);
    expect(ran.stderr).toContain(`--url ${server.url}`);
  });

  test('exits with 5 and instructions if nothing is listening at the address', async () => {
    const ran = await run(['status', '--url', 'https://127.0.0.1:1'], env);
    expect(ran).toMatchObject({ exit: 5, stdout: '' });
    expect(ran.stderr).toContain('nothing is listening at that address');
    const json = await run(['status', '--url', 'https://127.0.0.1:1', '--json'], env);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'unreachable' }, exit: 5 });
    expect(json.stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  test('exits with 5 if a server that is not an orchestrator responds', async () => {
    answers.getStatus = () => ({ status: 404, body: 'hello' });
    expect((await muster('status')).exit).toBe(5);
  });
});

describe('with a terminal', () => {
  /** A prompter that returns the given answers and records the questions. */
  const person = (...given: (boolean | string)[]) => {
    const questions: string[] = [];
    const next = (question: string) => {
      questions.push(question);
      const answer = given.shift();
      if (answer === undefined) throw new Error(`nobody answers ${question}`);
      return answer;
    };
    const prompt: Prompter = {
      interactive: true,
      secret: async () => '',
      choose: async () => null,
      confirm: async (question) => next(question) === true,
      ask: async (question, initial, fault) => {
        const answer = next(`${question} [${initial}]`) as string;
        expect(fault(answer)).toBeUndefined();
        return answer;
      },
    };
    return { questions, terminal: { columns: 80, prompt } };
  };
  const tty = { TERM: 'xterm' };

  test('apply shows the plan, asks, and prints the outcome', async () => {
    answers.planAgent = () => ({ body: operation(variety) });
    answers.applyAgent = () => ({
      body: operation([result({ action: 'create', status: 'changed' })], { kind: 'apply' }),
    });
    const { questions, terminal } = person(true);
    const ran = await run(['apply', 'web-1', '-m', 'motd'], { ...env, NO_COLOR: '1' }, '', terminal);
    expect(ran.exit, ran.stderr).toBe(0);
    expect(questions).toEqual(['Apply this on web-1? It removes 1 resource.']);
    // Only the confirmed plan is applied.
    expect(sent('applyAgent')?.body).toEqual({
      modules: ['motd'],
      offline: 'report',
      plan_id: operation(variety).operation_id,
    });
    expect(ran.stdout.indexOf('Plan for web-1')).toBeLessThan(ran.stdout.indexOf('Apply on web-1'));
  });

  test('apply changes nothing, and fails, if the operator answers no', async () => {
    answers.planAgent = () => ({ body: operation(variety) });
    const { terminal } = person(false);
    expect((await run(['apply', 'web-1', '--remove'], env, '', terminal)).exit).toBe(1);
    expect(routes()).not.toContain('applyAgent');
  });

  test('prints a plan with removals without -m, but refuses to apply it', async () => {
    answers.planAgent = () => ({ body: operation(variety) });
    const { questions, terminal } = person();
    const ran = await run(['apply', 'web-1'], env, '', terminal);
    expect(ran.exit).toBe(1);
    expect(ran.stdout).toContain('Plan for web-1');
    expect(ran.stderr).toContain('muster apply web-1 --remove');
    expect(questions).toEqual([]);
    expect(routes()).not.toContain('applyAgent');
  });

  test('does not ask if there is nothing to apply', async () => {
    answers.planAgent = () => ({ body: operation([result({})]) });
    const { questions, terminal } = person();
    expect((await run(['apply', 'web-1'], env, '', terminal)).exit).toBe(0);
    expect(questions).toEqual([]);
    expect(routes()).not.toContain('applyAgent');
  });

  test('does not apply a failed plan', async () => {
    answers.planAgent = () => ({
      body: operation([result({ status: 'failed', message: 'no such user' })], { status: 'failed' }),
    });
    const { terminal } = person();
    const ran = await run(['apply', 'web-1'], env, '', terminal);
    expect(ran.exit).toBe(1);
    expect(ran.stdout).toContain('no such user');
    expect(routes()).not.toContain('applyAgent');
  });

  test('shows an unknown certificate until it is accepted, and accepts only that one later', async () => {
    const { MUSTER_FINGERPRINT: _, ...withoutFingerprint } = env;
    const own = { ...withoutFingerprint, XDG_CONFIG_HOME: join(home.path, 'first-use'), MUSTER_KEY_FILE: keyFile() };
    const no = await run(['status'], own, '', person(false).terminal);
    expect(no.exit).toBe(5);
    expect(no.stderr).toContain(showFingerprint(certificate.fingerprint));
    expect(server.seen).toEqual([]);
    const yes = person(true);
    expect((await run(['status'], own, '', yes.terminal)).exit).toBe(0);
    expect(yes.questions).toEqual(['Trust this certificate?']);
    expect((await run(['status'], own)).exit).toBe(0);

    const other = await standIn({ tls: await makeCertificate() });
    const path = join(home.path, 'first-use', 'muster', 'profiles.json');
    const { port } = new URL(server.url);
    const moved = (await readFile(path, 'utf8')).replace(`:${port}`, `:${new URL(other.url).port}`);
    await writeFile(path, moved);
    const changed = await run(['status', '--url', other.url], own, '', person().terminal);
    expect(changed.exit).toBe(5);
    expect(changed.stderr).toContain('has changed: it is not the');
    expect(other.seen).toEqual([]);
    await other.close();
  });

  test('approve shows the agent and proposes a valid name', async () => {
    answers.getAgent = () => ({
      body: agent({
        name: null,
        status: 'pending',
        attributes: { hostname: 'web-9.lan\u001b[2J' },
        pin_source: 'first_use',
      }),
    });
    const { questions, terminal } = person('web-9');
    const ran = await run(['agents', 'approve', 'web-1'], env, '', terminal);
    expect(ran.exit).toBe(0);
    expect(questions).toEqual(['Permanent name: [web-9]']);
    expect(ran.stderr).toContain('192.0.2.17');
    expect(ran.stderr).toContain('unverified');
    expect(sent('setAgentStatus')?.body).toEqual({ status: 'approved', name: 'web-9' });
  });

  test('prints colors, except with NO_COLOR or on a dumb terminal', async () => {
    const { terminal } = person();
    expect((await run(['agents', 'list'], { ...env, ...tty }, '', terminal)).stdout).toContain('\u001b[');
    for (const without of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
      expect((await run(['agents', 'list'], { ...env, ...tty, ...without }, '', terminal)).stdout).not.toContain(
        '\u001b',
      );
  });

  test.each([80, 120])('fits tables into %i columns', async (columns) => {
    const long = agent({
      name: 'a-machine-with-a-rather-long-name-in-the-cellar',
      tags: { a: 'x'.repeat(100), b: 'y' },
    });
    answers.listAgents = () => ({ body: [long, agent({})] });
    const { prompt } = person().terminal;
    const { stdout } = await run(['agents', 'list'], { ...env, NO_COLOR: '1' }, '', { columns, prompt });
    for (const line of stdout.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(columns);
    expect(stdout).toContain('…');
  });

  test('shows a module with visible escapes', async () => {
    answers.getModule = ({ route }) => ({
      body: { ...(route.example.answer as object), content: 'name: a\n# \u001b[31m\n' },
    });
    const { stdout } = await run(['modules', 'show', 'motd'], env, '', person().terminal);
    expect(stdout).toBe('name: a\n# \\x1b[31m\n');
  });
});

describe('in a separate process', () => {
  test('exits with the command’s code, and writes only data to stdout', async () => {
    const status = await spawned(['status'], env);
    expect(status).toMatchObject({ exit: 0, stderr: '' });
    expect(status.stdout).toContain(server.url);
    expect(await spawned(['plan'], env)).toMatchObject({ exit: 2, stdout: '' });
    answers.planAgent = () => ({ body: operation(variety) });
    expect((await spawned(['plan', 'web-1', '--exit-code'], env)).exit).toBe(3);
  });

  test('prints the command that shows the operation if a signal interrupts an apply', async () => {
    let waiting = () => {};
    const requested = new Promise<void>((resolve) => {
      waiting = resolve;
    });
    answers.applyAgent = () => ({ status: 202, body: operation([], { kind: 'apply', status: 'running' }) });
    answers.getOperation = () => {
      waiting();
      return { body: operation([], { kind: 'apply', status: 'running' }) };
    };
    const ran = await spawned(['apply', 'web-1', '-m', 'a', '--yes'], env, '', 'stays', (child) => {
      void requested.then(() => child.kill('SIGINT'));
    });
    expect(ran.exit).toBeNull();
    expect(ran.stderr).toBe(
      'The plan or apply continues on the orchestrator. To see it: muster operations show 01KAGZ4D3E5F6G7H8J9K0M1N2P\nTo cancel it: muster operations cancel 01KAGZ4D3E5F6G7H8J9K0M1N2P\n',
    );
  });

  test('exits without an error if the reader closes the pipe', async () => {
    answers.listAgents = () => ({ body: Array.from({ length: 3000 }, () => agent({})) });
    const ran = await spawned(['agents', 'list', '--json'], env, '', 'hang up');
    expect(ran).toMatchObject({ exit: 0, stderr: '' });
  });

  test('writes a long response completely to a pipe', async () => {
    answers.listAgents = () => ({ body: Array.from({ length: 3000 }, () => agent({})) });
    expect(JSON.parse((await spawned(['agents', 'list', '--json'], env)).stdout)).toHaveLength(3000);
  });
});

describe('discovery', () => {
  const pending = (letter: string) =>
    agent({ node_id: letter.repeat(32), name: null, status: 'pending', initial_hostname: `host-${letter}` });

  test('announces the orchestrator, and prints new agents', async () => {
    let requests = 0;
    answers.listAgents = () => ({ body: requests++ === 0 ? [pending('a')] : [pending('a'), pending('b')] });
    answers.discover = () => ({ body: { sent_to: ['192.0.2.255:4747'] } });
    const found = await muster('discover', '--wait', '1');
    expect(found.exit, found.stderr).toBe(0);
    expect(sent('discover')?.body).toEqual({});
    expect(found.stdout).toContain('host-b');
    expect(found.stdout).not.toContain('host-a');
    expect(found.stderr).toContain('Announced to 192.0.2.255:4747.');
    expect(found.stderr).toContain('muster agents approve');
    requests = 0;
    const forPrograms = await muster('discover', '192.0.2.40:4747', '--wait', '1', '--json');
    expect(sent('discover')?.route.id).toBe('discover');
    expect(JSON.parse(forPrograms.stdout)).toMatchObject({
      sent_to: ['192.0.2.255:4747'],
      pending: [{ initial_hostname: 'host-b' }],
    });
  });

  test('reports that no agent connected, and refuses an invalid waiting time', async () => {
    answers.listAgents = () => ({ body: [] });
    expect((await muster('discover', '--wait', '1')).stderr).toContain('No new agent has connected.');
    expect((await muster('discover', '--wait', 'soon')).exit).toBe(2);
  });
});
