import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { listTerminals, type TerminalSession } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { agent } from '../../../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere, type Ran, muster as spawned } from '../../../test/process.ts';

// Runs the commands against a server that validates every request with the route table, over TLS with a pinned
// certificate. Tests that need real standard streams run the program as a separate process.

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let answers: Record<string, (seen: Seen) => Answer | undefined> = {};
let env: Record<string, string>;
let typed = '';
/** Called by the server on the first input. */
let onTyped: (send: (data: string | Buffer) => void) => void = () => {};

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({
    tls: certificate,
    answers: new Proxy({}, { get: (_, id: string) => answers[id] }),
    webSocket: (socket) => {
      socket.send(JSON.stringify({ type: 'resize', cols: 80, rows: 24 }));
      let done = false;
      socket.on('message', (data: Buffer, isBinary) => {
        if (!isBinary) return;
        typed += data.toString('utf8');
        if (!typed.endsWith('\u0004') || done) return;
        done = true;
        onTyped((piece) => socket.send(piece));
      });
    },
  });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  expect((await musterHere(['operator', 'init'], env)).exit).toBe(0);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  answers = { getAgent: () => ({ body: agent({ name: 'web-1' }) }) };
  typed = '';
  server.seen.length = 0;
});

/** Fails the test if the program asks a question. */
const refusePrompt = () => Promise.reject(new Error('it asks'));
const prompt = {
  interactive: true,
  confirm: refusePrompt,
  ask: refusePrompt,
  choose: refusePrompt,
  secret: refusePrompt,
};

const muster = (...args: string[]) => musterHere(['terminal', ...args], env);
const sent = (id: string) => server.seen.filter(({ route }) => route.id === id);

const [example] = listTerminals.example.answer as [TerminalSession];
const session = (fields: Partial<TerminalSession>): TerminalSession => ({ ...example, ...fields });
const two = [
  session({ session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3A1S' }),
  session({
    session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3B2S',
    status: 'closed',
    closed_at: example.opened_at + 90,
    attached: [],
  }),
];

const open = (input: string): Promise<Ran> => spawned(['terminal', 'open', 'web-1'], env, input);

test('forwards piped input, prints output unchanged, and exits with the shell’s exit code', async () => {
  onTyped = (send) => {
    send(Buffer.from('grün 東京\r\n'));
    send(JSON.stringify({ type: 'exit', code: 42, signal: null }));
  };
  const ran = await open('uptime\n');
  expect(ran).toEqual({ exit: 42, stdout: 'grün 東京\r\n', stderr: '' });
  expect(typed).toMatch(/^uptime\n\u0004+$/);
  expect(sent('openTerminal')[0]?.query).toEqual({});
});

test('reports the signal or error that closed the session, after all output', async () => {
  onTyped = (send) => {
    send(Buffer.from('last words\u001b[?1049h'));
    send(JSON.stringify({ type: 'exit', code: null, signal: 'SIGKILL' }));
  };
  const killed = await open('x\n');
  expect(killed).toMatchObject({ exit: 137, stdout: 'last words\u001b[?1049h' });
  expect(killed.stderr).toBe('the shell on web-1 ended by signal SIGKILL\n');
  onTyped = (send) =>
    send(JSON.stringify({ type: 'error', code: 'terminal_interrupted', message: 'the agent \u001b[31mis gone' }));
  typed = '';
  const cut = await open('x\n');
  expect(cut.exit).toBe(5);
  expect(cut.stderr).toMatch(
    /^error: the agent \\x1b\[31mis gone\nhint: To see the session: muster terminal replay 01K/,
  );
});

test('names the setting and the machine in the error if the agent refuses a terminal session', async () => {
  for (const [code, key] of [
    ['terminal_disabled', 'remote_terminal.enabled: true'],
    ['terminal_shell_refused', 'remote_terminal.allow_operator_shell_override: true'],
    ['terminal_limit', 'remote_terminal.max_sessions'],
  ] as const) {
    answers.openTerminal = () => ({ code, detail: 'web-1 refuses' });
    const ran = await muster('open', 'web-1', '--shell', '/bin/sh');
    expect(ran).toMatchObject({ exit: 1, stdout: '' });
    expect(ran.stderr).toContain('error: web-1 refuses');
    expect(ran.stderr).toContain(`${key} in the configuration of the agent on web-1`);
  }
  expect(sent('openTerminal')[0]?.query).toEqual({ shell: '/bin/sh' });
  answers.openTerminal = () => ({ code: 'terminal_shell_refused', detail: '"/bin/x" is not in /etc/shells of web-1' });
  expect((await muster('open', 'web-1', '--shell', '/bin/x')).stderr).toContain(
    'hint: Specify one of the shells in /etc/shells with --shell',
  );
  answers.openTerminal = () => ({
    code: 'terminal_disabled',
    detail: 'the release of web-1 has no terminals: update its agent',
  });
  expect((await muster('open', 'web-1')).stderr).not.toContain('remote_terminal.enabled: true');
  answers.openTerminal = () => ({ code: 'agent_offline', detail: 'web-1 is offline' });
  expect(await muster('open', 'web-1')).toMatchObject({ exit: 5 });
  expect(await muster('open', 'web-1', '--shell', 'zsh')).toMatchObject({ exit: 2 });
});

test('lists sessions with agents, operators, and attached operators', async () => {
  answers.listTerminals = () => ({
    body: [
      session({ attached: [...example.attached, { operator_id: 'x', username: 'b\u001bob', mode: 'view', since: 1 }] }),
      ...two.slice(1),
    ],
  });
  const ran = await muster('list', '--status', 'active');
  const lines = ran.stdout.split('\n');
  expect(lines[0]).toMatch(/^SESSION +AGENT +OPERATOR +STATUS +OPENED +DURATION +ATTACHED/);
  expect(lines[1]).toMatch(/^01KAGZ7Q4W8E2R5T6Y9V0P3A1S +web-1 +ada +active .* ada, b\\x1bob \(view only\)$/);
  expect(lines[2]).toMatch(/ closed .* 1m 30s +-$/);
  expect(sent('listTerminals')[0]?.query).toEqual({ limit: '50', status: 'active' });
  expect(await muster('list', '--status', 'open')).toMatchObject({ exit: 2 });
  // A terminal shows the same list unless it is narrow.
  const on = async (columns: number) => (await musterHere(['terminal', 'list'], env, '', { columns, prompt })).stdout;
  expect((await on(100)).split('\n')[1]).toMatch(/^01KAGZ7Q4W8E2R5T6Y9V0P3A1S /);
  expect((await on(80)).split('\n')[1]).toMatch(/^9V0P3A1S /);
});

test('accepts the first or last characters of a session ID if only one session matches', async () => {
  answers.listTerminals = () => ({ body: two });
  expect((await muster('close', 'a1s')).stdout).toBe('Closed 01KAGZ7Q4W8E2R5T6Y9V0P3A1S.\n');
  expect(sent('closeTerminal')[0]?.params).toEqual({ session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3A1S' });
  const both = await muster('close', '01KAG');
  expect(both).toMatchObject({ exit: 1 });
  expect(both.stderr).toContain('2 terminal session ids');
  const partly = await muster('close', 'a1s', 'nope', '--json');
  expect(partly).toMatchObject({ exit: 6, stdout: '{\n  "closed": [\n    "01KAGZ7Q4W8E2R5T6Y9V0P3A1S"\n  ]\n}\n' });
});

test('reports that a session was closed if the operator attaches to it', async () => {
  answers.listTerminals = ({ query }) => ({ body: query.status === 'active' ? two.slice(0, 1) : two });
  answers.attachTerminal = () => ({ code: 'terminal_ended', detail: 'the session has ended' });
  const ran = await muster('attach', 'b2s');
  expect(ran).toMatchObject({ exit: 1, stderr: expect.stringContaining('the session has ended') });
  expect(sent('attachTerminal')[0]?.params).toEqual({ session_id: two[1]!.session_id });
});

test('shows all properties of a session', async () => {
  const { stdout } = await muster('show', two[0]!.session_id);
  for (const word of [
    'session',
    'agent',
    'operator',
    'status',
    'opened',
    'ended',
    'duration',
    'attached',
    'transcript',
  ])
    expect(stdout).toMatch(new RegExp(`^${word} +\\S`, 'm'));
});

const recording = [
  { version: 2, width: 80, height: 24 },
  [0, 'o', '$ \u001b[1mls\u001b[0m\r\n'],
  [3600, 'o', '\u001b[6n\u001b]52;c;eA==\u0007grün\r\n'],
]
  .map((line) => `${JSON.stringify(line)}\n`)
  .join('');
const transcripts = () => {
  answers.getTranscript = ({ query }) => ({ text: query.format === 'raw' ? '\u001b[6nraw' : recording });
};

test('replays plain text to a pipe immediately, and the exact bytes with --raw', async () => {
  transcripts();
  const id = two[0]!.session_id;
  const text = await spawned(['terminal', 'replay', id], env);
  expect(text).toEqual({ exit: 0, stdout: '$ ls\ngrün\n', stderr: '' });
  const raw = await spawned(['terminal', 'replay', id, '--raw'], env);
  expect(raw.stdout).toBe('\u001b[6nraw');
  expect(await muster('replay', id, '--speed', '0')).toMatchObject({ exit: 2 });
});

test.each([
  ['replay', (id: string) => ['replay', id]],
  ['replay --raw', (id: string) => ['replay', '--raw', id]],
  ['download -o -', (id: string) => ['download', id, '-o', '-']],
] as const)('ignores a closed pipe, and fails if the disk is full or broken, for %s', async (_, words) => {
  const line = 'x'.repeat(100_000);
  const long = [{ version: 2, width: 80, height: 24 }, ...Array.from({ length: 20 }, () => [0, 'o', `${line}\n`])];
  answers.getTranscript = () => ({ text: long.map((each) => `${JSON.stringify(each)}\n`).join('') });
  const args = ['terminal', ...words(two[0]!.session_id)];
  expect(await spawned(args, env, '', 'hang up')).toMatchObject({ exit: 0, stderr: '' });
  expect(await spawned(args, env, '', 'full disk')).toEqual({
    exit: 1,
    stdout: '',
    stderr: 'error: cannot write to standard output: no space left\n',
  });
  expect(await spawned(args, env, '', 'broken disk')).toEqual({
    exit: 1,
    stdout: '',
    stderr: expect.stringContaining('error: cannot write to standard output: '),
  });
});

test('reports a full disk and closes the session', async () => {
  onTyped = (send) => send(Buffer.from('grün\r\n'));
  answers.closeTerminal = () => undefined;
  const ran = await spawned(['terminal', 'open', 'web-1'], env, 'x\n', 'full disk');
  expect(ran).toMatchObject({ exit: 1, stderr: 'error: cannot write to standard output: no space left\n' });
  expect(sent('closeTerminal')).toHaveLength(1);
});

test('downloads a transcript completely into a private file', async () => {
  transcripts();
  const path = join(home.path, 'session.cast');
  const ran = await muster('download', two[0]!.session_id, '-o', path);
  expect(ran).toMatchObject({ exit: 0, stderr: '' });
  expect(await readFile(path, 'utf8')).toBe(recording);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const broken = await muster('download', two[0]!.session_id, '-o', join(home.path, 'nowhere', 'x'));
  expect(broken).toMatchObject({ exit: 1 });
});
