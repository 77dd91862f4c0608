import { execFile } from 'node:child_process';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listSessions } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../test/certificate.ts';
import { agent } from '../../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../test/orchestrator.ts';
import { makeHome, musterHere } from '../../test/process.ts';
import { describeProgram } from '../program/program.ts';
import { choicesIn, completionOf } from './completion.ts';
import { completionScripts } from './scripts.ts';

const program = await describeProgram();
const completionFor = (...typed: string[]) => completionOf(program, typed);
const values = (...typed: string[]) => completionFor(...typed).fixed.map(({ value }) => value);

describe('candidates of a command line', () => {
  test('completes only existing nouns and subcommands', () => {
    expect(values('ag')).toEqual(expect.arrayContaining(['agents', 'modules', 'apply']));
    expect(values('help', '')).toEqual(values(''));
    expect(values('agents', '')).toEqual(expect.arrayContaining(['list', 'show', 'approve']));
    expect(completionFor('agents', 'lst', '')).toMatchObject({ fixed: [], source: null, files: false });
    expect(completionFor('status', '')).toMatchObject({ fixed: [], source: null, files: false });
    expect(completionFor('windows', 'add', '')).toMatchObject({ fixed: [], source: null, files: false });
  });

  test('completes options of the command and global options', () => {
    const flags = values('agents', 'list', '--');
    expect(flags).toEqual(expect.arrayContaining(['--status', '--json', '--url', '--help']));
    expect(flags).not.toContain('--canary');
    expect(completionFor('agents', 'list', '--', '--').fixed).toEqual([]);
  });

  test.each([
    [['agents', 'show', 'we'], 'agents', '', 'we'],
    [['agents', 'show', 'web-1', ''], 'agents', '', ''],
    [['apply', 'web-1', '-m', 'ng'], 'modules', '', 'ng'],
    [['apply', '-m', 'base,ng'], 'modules', 'base,', 'ng'],
    [['apply', '--module=ng'], 'modules', '--module=', 'ng'],
    [['apply', '--module', '=', 'ng'], 'modules', '', 'ng'],
    [['--url', 'https://x', 'modules', 'show', ''], 'modules', '', ''],
    [['secrets', 'get', ''], 'secrets', '', ''],
    [['secrets', 'set', 'x', '--agent', 'web-1', 'we'], 'agents', '', 'we'],
    [['assignments', 'show', ''], 'assignments', '', ''],
    [['runs', 'show', ''], 'runs', '', ''],
    [['operations', 'cancel', ''], 'operations', '', ''],
    [['terminal', 'close', ''], 'sessions', '', ''],
    [['terminal', 'open', ''], 'agents', '', ''],
    [['sessions', 'end', ''], 'sign-in sessions', '', ''],
    [['profile', 'use', ''], 'profiles', '', ''],
    [['status', '--profile', ''], 'profiles', '', ''],
    [['enrollment-tokens', 'revoke', ''], 'tokens', '', ''],
  ])('completes %j with the names of %s', (typed, source, before, begins) => {
    expect(completionOf(program, typed)).toMatchObject({ source, before, begins, files: false });
  });

  test.each([[['modules', 'upload', '']], [['secrets', 'set', 'x', '--file', '']], [['status', '--key-file', '']]])(
    'completes %j as a file name',
    (typed) => {
      expect(completionOf(program, typed).files).toBe(true);
    },
  );

  test('does not complete the name of a new profile', () => {
    expect(completionFor('profile', 'create', '').source).toBeNull();
    expect(completionFor('assignments', 'create', '').source).toBeNull();
  });

  test('reads choices from the help text', () => {
    expect(values('agents', 'list', '--status', '')).toEqual([
      'pending',
      'approved',
      'rejected',
      'connected',
      'offline',
    ]);
    expect(values('drift', '--status', '')).toEqual(['in_sync', 'drifted', 'failed', 'cancelled']);
    expect(values('completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(choicesIn('how long it lasts, e.g. 2h')).toEqual([]);
  });
});

describe('candidates from the orchestrator', () => {
  let home: Awaited<ReturnType<typeof makeHome>>;
  let server: Standing;
  let env: Record<string, string>;
  let answers: Record<string, (seen: Seen) => Answer | undefined> = {};

  beforeAll(async () => {
    const certificate = await makeCertificate();
    server = await standIn({ tls: certificate, answers: new Proxy({}, { get: (_, id: string) => answers[id] }) });
    home = await makeHome();
    env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
    await musterHere(['operator', 'init'], env);
  });
  afterAll(async () => {
    await server.close();
    await home.remove();
  });
  beforeEach(() => {
    answers = {};
    server.seen.length = 0;
  });
  const complete = (variables: Record<string, string>, ...typed: string[]) =>
    musterHere(['__complete', '--', ...typed], variables);
  /** Creates a separate home directory with its own cache and sign-in session. */
  const own = async (name: string) => {
    const here = { ...env, XDG_CACHE_HOME: join(home.path, name) };
    await musterHere(['login'], here);
    server.seen.length = 0;
    return here;
  };

  test('completes the IDs of sign-in sessions', async () => {
    const here = await own('sessions');
    const [sessionExample] = listSessions.example.answer as readonly object[];
    answers.listSessions = () => ({
      body: [
        { ...sessionExample, id: '01B', kind: 'token', current: true, user_agent: 'muster/0.2' },
        { ...sessionExample, id: '01A', kind: 'console', current: false, user_agent: null },
      ],
    });
    expect((await complete(here, 'sessions', 'end', '')).stdout).toBe(
      '01B\ttoken, this one, muster/0.2\n01A\tconsole\n',
    );
  });

  test('requests agents once, and caches them in a private file', async () => {
    const here = await own('once');
    answers.listAgents = () => ({
      body: [agent({}), agent({ name: null, status: 'pending', node_id: 'ab'.repeat(16) }), agent({ name: 'db-1' })],
    });
    expect(await complete(here, 'agents', 'show', 'we')).toEqual({ exit: 0, stderr: '', stdout: 'web-1\tapproved\n' });
    expect((await complete(here, 'agents', 'show', 'ab')).stdout).toBe(`${'ab'.repeat(16)}\tpending, web-1\n`);
    expect((await complete(here, 'plan', 'db-1', 'db')).stdout).not.toContain('db-1');
    expect(server.seen.filter(({ route }) => route.id === 'listAgents')).toHaveLength(1);
    const cacheDirectory = join(home.path, 'once', 'muster', 'completion');
    const [file = ''] = await readdir(cacheDirectory);
    expect((await stat(join(cacheDirectory, file))).mode & 0o777).toBe(0o600);
    expect((await stat(cacheDirectory)).mode & 0o777).toBe(0o700);
    // Completion ignores a cache file that other users can write.
    await chmod(join(cacheDirectory, file), 0o666);
    await complete(here, 'agents', 'show', 'we');
    expect(server.seen.filter(({ route }) => route.id === 'listAgents')).toHaveLength(2);
  });

  test('omits names that a shell would not read as a single word', async () => {
    answers.listModules = () => ({
      body: ['motd', 'a b', '$(id)', '\u001b[2J', '--yes', 'ünïcode'].map((name) => ({
        name,
        uploaded_at: 1,
        uploaded_by: 'x',
      })),
    });
    expect((await complete(await own('odd'), 'modules', 'show', '')).stdout).toBe('motd\nünïcode\n');
  });

  test.each([
    ['the orchestrator does not answer', { MUSTER_URL: 'https://127.0.0.1:1' }],
    ['the certificate is unknown', { MUSTER_FINGERPRINT: '', XDG_CONFIG_HOME: '/nonexistent' }],
    ['there is no key', { MUSTER_KEY_FILE: '/nonexistent' }],
    ['a variable is wrong', { MUSTER_URL: 'ftp://x' }],
  ])('completes nothing if %s', async (_, variables) => {
    const MUSTER_KEY_FILE = join(home.path, 'config', 'muster', 'operator.key');
    expect(await complete({ ...(await own('silent')), MUSTER_KEY_FILE, ...variables }, 'agents', 'show', '')).toEqual({
      exit: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('does not sign in to complete a word', async () => {
    const here = { ...env, XDG_CACHE_HOME: join(home.path, 'signed-out') };
    expect(await complete(here, 'agents', 'show', '')).toEqual({ exit: 0, stdout: '', stderr: '' });
    expect(server.seen).toEqual([]);
  });

  test('uses cached candidates after the orchestrator has stopped', async () => {
    const here = await own('stale');
    expect((await complete(here, 'modules', 'show', '')).stdout).toBe('motd\n');
    const cacheDirectory = join(home.path, 'stale', 'muster', 'completion');
    const [name = ''] = await readdir(cacheDirectory);
    const { candidates } = JSON.parse(await readFile(join(cacheDirectory, name), 'utf8'));
    await writeFile(join(cacheDirectory, name), JSON.stringify({ at: 1, candidates }));
    answers.listModules = () => ({ code: 'draining', detail: 'it is stopping' });
    expect((await complete(here, 'modules', 'show', '')).stdout).toBe('motd\n');
    expect(server.seen.filter(({ route }) => route.id === 'listModules')).toHaveLength(2);
  });

  test('completes a line in a real bash', async () => {
    const entry = fileURLToPath(new URL('../main.ts', import.meta.url));
    const script = `
      muster() { ${process.execPath} ${entry} "$@"; }
      source <(muster completion bash)
      try() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _muster; echo "$*: \${COMPREPLY[*]}"; }
      complete -p muster
      try muster dri
      try muster agents show w
      try muster agents list --status = pe
      cd /etc && try muster modules upload host
    `;
    const here = await own('bash');
    const stdout = await new Promise<string>((resolve, reject) =>
      execFile('bash', ['--norc', '-c', script], { env: here }, (error, out, err) =>
        error || err ? reject(error ?? new Error(err)) : resolve(out),
      ),
    );
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(0, 4)).toEqual([
      'complete -F _muster muster',
      'muster dri: drift',
      'muster agents show w: web-1',
      'muster agents list --status = pe: pending',
    ]);
    expect(lines[4]).toMatch(/ hostname\b/);
  });
});

test.each(Object.entries(completionScripts))(
  'prints the installation command in the completion script of %s',
  async (shell, script) => {
    expect((await musterHere(['completion', shell], {})).stdout).toBe(script);
    expect(script).toContain(`muster completion ${shell}`);
  },
);
