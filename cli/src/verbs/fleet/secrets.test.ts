import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere as run } from '../../../test/process.ts';
import type { Prompter } from '../../keys/prompt.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let answers: Record<string, (seen: Seen) => Answer | undefined> = {};
let env: Record<string, string>;

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({ tls: certificate, answers: new Proxy({}, { get: (_, id: string) => answers[id] }) });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  await run(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  answers = {};
  server.seen.length = 0;
});

const muster = (args: string[], input = '') => run(['secrets', ...args], env, input);
const sent = (id: string) => server.seen.find(({ route }) => route.id === id);
const absent = () => ({ code: 'secret_not_found' as const, detail: 'there is no secret "x"' });

test('reads a value from standard input without its trailing newline, and does not print it', async () => {
  answers.getSecret = absent;
  const ran = await muster(['set', 'x', '--selector', 'role=web', '--description', 'of x'], 'hunter2\n');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(sent('createSecret')?.body).toEqual({
    name: 'x',
    value: 'hunter2',
    description: 'of x',
    restriction: { tags: 'role=web' },
  });
  expect(ran.stdout + ran.stderr).not.toContain('hunter2');
  expect(ran.stdout).toBe('Created x; available to role=web.\n');
});

test('changes the value of an existing secret, and keeps its other properties', async () => {
  const ran = await muster(['set', 'db_password', '--json'], 'hunter2');
  expect(ran.exit).toBe(0);
  expect(sent('updateSecret')).toMatchObject({ params: { name: 'db_password' }, body: { value: 'hunter2' } });
  expect(sent('updateSecret')?.body).toEqual({ value: 'hunter2' });
  expect(JSON.parse(ran.stdout)).toMatchObject({ name: 'db_password' });
});

test('reads a file byte for byte, and requires UTF-8 text', async () => {
  const file = join(home.path, 'key.pem');
  await writeFile(file, '-----BEGIN-----\r\nabc\n');
  expect((await muster(['set', 'x', '--file', file])).exit).toBe(0);
  expect(sent('updateSecret')?.body).toEqual({ value: '-----BEGIN-----\r\nabc\n' });
  await writeFile(file, Buffer.from([0xff, 0xfe]));
  const binary = await muster(['set', 'x', '--file', file]);
  expect(binary).toMatchObject({ exit: 1 });
  expect(binary.stderr).toContain('base64');
  expect((await muster(['set', 'x', '--file', `${file}.no`])).stderr).toContain('no such file');
});

test('asks for a secret’s value on a terminal', async () => {
  const questions: string[] = [];
  const prompt: Prompter = {
    interactive: true,
    confirm: async () => false,
    ask: async () => '',
    choose: async () => null,
    secret: async (question) => {
      questions.push(question);
      return 'hunter2';
    },
  };
  const ran = await run(['secrets', 'set', 'x'], env, '', { columns: 80, prompt });
  expect(ran.exit).toBe(0);
  expect(questions).toEqual(['Value of x']);
  expect(sent('updateSecret')?.body).toEqual({ value: 'hunter2' });
  expect(ran.stdout + ran.stderr).not.toContain('hunter2');
});

test('refuses an invalid secret value without sending a request', async () => {
  for (const input of ['', '\n', 'x'.repeat(65_537)]) expect((await muster(['set', 'x'], input)).exit).toBe(2);
  expect((await muster(['set', 'x', 'hunter2'], 'v')).exit).toBe(2);
  expect((await muster(['update', 'x'])).exit).toBe(2);
  expect((await muster(['update', 'x', '--anyone', '--selector', 'a=b'])).exit).toBe(2);
  expect((await muster(['update', 'x', '--expires', 'soon'])).exit).toBe(2);
  expect(sent('createSecret') ?? sent('updateSecret')).toBeUndefined();
});

test('does not send a value unencrypted', async () => {
  const ran = await run(['secrets', 'set', 'x', '--url', 'http://muster.example:1'], env, 'hunter2');
  expect(ran.exit).toBe(1);
  expect(ran.stderr).toContain('refusing to send a secret unencrypted');
  expect(server.seen).toEqual([]);
});

test('changes the expiry and the restriction of a secret', async () => {
  await muster(['update', 'x', '--expires', 'never', '--anyone']);
  expect(sent('updateSecret')?.body).toEqual({ expires_at: null, restriction: {} });
  server.seen.length = 0;
  await muster(['update', 'x', '--expires', '2d', '--agent', 'web-1', '--description', '']);
  const { expires_at, ...body } = (sent('updateSecret')?.body ?? {}) as { expires_at: string };
  expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(2 * 86_400_000 - 60_000);
  expect(body).toEqual({ description: '', restriction: { node_ids: ['3f8c2b0a9d7e41568c1b2a3d4e5f6071'] } });
  server.seen.length = 0;
  await muster(['update', 'x', '--expires', '2027-01-31T08:00:00+01:00']);
  expect(sent('updateSecret')?.body).toEqual({ expires_at: '2027-01-31T07:00:00.000Z' });
  server.seen.length = 0;
  // The secret expires at the end of the day in the local time zone.
  await muster(['set', 'x', '--expires', '2027-01-31'], 'hunter2');
  expect(sent('updateSecret')?.body).toEqual({ value: 'hunter2', expires_at: new Date(2027, 1, 1).toISOString() });
});

test('lists the secrets from all pages, and suggests the nearest name for a typo', async () => {
  const [example] = (await muster(['list', '--json'])).stdout
    ? JSON.parse((await muster(['list', '--json'])).stdout)
    : [];
  answers.listSecrets = ({ query }) => {
    const offset = Number(query.offset);
    const count = offset === 0 ? 1000 : 5;
    return { body: Array.from({ length: count }, (_, i) => ({ ...example, name: `s${offset + i}` })) };
  };
  expect(JSON.parse((await muster(['list', '--json'])).stdout)).toHaveLength(1005);
  expect((await muster(['list'])).stdout).toMatch(/^NAME +EXPIRES +ALLOWED FOR +CHANGED +DESCRIPTION\n/);
  answers.getSecret = absent;
  const ran = await muster(['get', 's1004x']);
  expect(ran.exit).toBe(1);
  expect(ran.stderr).toContain('Did you mean s1004?');
  answers.listSecrets = () => ({ body: [{ ...example, restriction: { node_ids: [], tags: null } }] });
  expect((await muster(['list'])).stdout).toContain('  no agent  ');
  answers = {};
  expect((await muster(['get', 'db_password'])).stdout).toContain('agents     role=web');
});

test('continues if a secret cannot be removed', async () => {
  answers.removeSecret = ({ params }) => (params.name === 'a' ? absent() : undefined);
  const ran = await muster(['remove', 'a', 'b', '--yes']);
  expect(ran.exit).toBe(6);
  expect(ran.stdout).toBe('Removed b.\n');
});

test('prints the result of rotate-key, and exits with 6 if a value cannot be decrypted', async () => {
  const ran = await muster(['rotate-key']);
  expect(ran.exit).toBe(0);
  expect(ran.stdout).toContain('Re-encrypted 12 values; all values now use key');
  expect(ran.stdout).toContain('No value needs key 7d793037a0760186');
  answers.rotateSecretsKey = ({ route }) => ({ body: { ...(route.example.answer as object), unreadable: ['x'] } });
  expect(await muster(['rotate-key'])).toMatchObject({
    exit: 6,
    stderr: expect.stringContaining('failed to decrypt 1 value'),
    stdout: expect.stringContaining('all other values now use key'),
  });
});

test('does not ask for a value if standard error is not a terminal', async () => {
  const ran = await run(['secrets', 'set', 'x'], env, 'hunter2\n', undefined, true);
  expect(ran).toMatchObject({ exit: 1, stderr: expect.stringContaining('without echo') });
  expect(server.seen.filter(({ route }) => /createSecret|updateSecret/.test(route.id))).toEqual([]);
});
