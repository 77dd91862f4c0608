import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { limits } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { withFilesLeft } from '../../test/few-files.ts';
import { runCommand } from '../host/processes/run-command.ts';
import { TestLink } from './test/test-link.ts';

const isRoot = process.geteuid?.() === 0;
let link: TestLink;

beforeEach(() => {
  link = new TestLink();
});
afterEach(async () => {
  await link.end();
});

const runs = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
const numberIn = (text: string, name: string) => Number(new RegExp(`${name}=(\\d+)`).exec(text)?.[1]);

describe.skipIf(process.platform !== 'linux')('a terminal', () => {
  describe('of a login', () => {
    test('starts a login shell with only the environment of the account', async () => {
      vi.stubEnv('MUSTER_TEST_SECRET', 'not for shells');
      vi.stubEnv('MALLOC_ARENA_MAX', '1');
      const shell = await link.open();
      const shown = await shell.run(
        'env; echo 0=$0; pwd; umask; echo open=$(ls /proc/$$/fd | tr "\\n" ,) files=$(ulimit -Sn)',
      );
      vi.unstubAllEnvs();
      const { username, homedir } = userInfo();
      for (const line of [
        `HOME=${homedir}`,
        `USER=${username}`,
        `LOGNAME=${username}`,
        'SHELL=/bin/sh',
        'TERM=xterm-256color',
      ])
        expect(shown).toContain(`${line}\r\n`);
      expect(shown).toMatch(/LANG=\S*utf-?8\r\n/i);
      expect(shown).toMatch(/PATH=\S*\/usr\/bin/);
      expect(shown).toContain('0=-sh\r\n');
      expect(shown).toContain(`\n${homedir}\r\n`);
      expect(shown).toContain('0022\r\n');
      // The shell has no open files except its own and the pipe for `ls`.
      expect(shown).toMatch(/open=0,1,(10,)?2,(255,)?3, files=1024\r/);
      expect(shown).not.toMatch(/MUSTER|MALLOC|NODE_|VITEST/);
      expect(link.messages[0]).toMatchObject({ type: 'terminal_opened', shell: '/bin/sh', user: username });
    });

    test('opens a terminal with the requested size, and resizes it', async () => {
      const shell = await link.open({ cols: 101, rows: 31 });
      expect(await shell.run('stty size')).toContain('31 101');
      link.link.receive({ type: 'terminal_resize', channel: shell.channel, cols: 77, rows: 11 });
      expect(await shell.run('stty size')).toContain('11 77');
    });

    test('transmits UTF-8, and erases whole characters on backspace', async () => {
      const shell = await link.open();
      expect(await shell.run("printf '\\305\\274\\303\\263\\305\\202\\304\\207 \\360\\237\\220\\247\\n'")).toContain(
        'żółć 🐧\r\n',
      );
      await shell.type('read line; echo "<$line>"\r');
      await shell.type('aż\x7fb\r');
      await shell.shows('<ab>');
    });

    test('passes Ctrl-C to the foreground job', async () => {
      const shell = await link.open();
      await shell.type(
        'sh -c \'trap "echo caught; exit 9" INT; echo rea"dy"; while :; do sleep 0.05; done\'; echo status=$?\r',
      );
      await shell.shows('ready');
      await shell.type('\x03');
      await shell.shows('status=9');
      expect(shell.text).toContain('caught');
      expect(shell.exit).toBeNull();
    });

    test.skipIf(!isRoot)("runs a shell as another user with only that user's groups", async () => {
      const own = process.getgroups!();
      process.setgroups!([0, 4, 24]);
      try {
        link.settings = { ...link.settings, user: 'nobody' };
        const shell = await link.open();
        expect(link.messages[0]).toMatchObject({ type: 'terminal_opened', user: 'nobody' });
        const shown = await shell.run(
          'echo id=$(id -u):$(id -g):$(id -G); pwd; echo $USER $HOME; ls -ln $(tty); grep Cap /proc/self/status',
        );
        expect(shown).toContain('id=65534:65534:65534\r\n');
        expect(shown).toContain('nobody /nonexistent\r\n');
        // The shell starts in `/`, because the home directory does not exist.
        expect(shown).toContain('\n/\r\n');
        expect(shown).toMatch(/crw--w---- 1 65534 /);
        expect(shown).toMatch(/CapEff:\s+0{16}/);
      } finally {
        process.setgroups!(own);
      }
    });

    test.skipIf(!isRoot)('opens a terminal for an agent that does not run as root', async () => {
      // Unlike root, this user can give files only to groups of which it is a member.
      process.seteuid!('nobody');
      try {
        expect((await link.open()).answer).toMatchObject({ type: 'terminal_opened', user: 'nobody' });
      } finally {
        process.seteuid!(0);
      }
    });

    test('passes no open files of other terminals to any program', async () => {
      await link.open();
      const second = await link.open();
      expect(await second.run('ls -l /proc/$$/fd')).not.toContain('ptmx');
      const listed = await runCommand(
        { program: 'ls', args: ['-l', '/proc/self/fd'], timeLimit: 10_000, outputCap: 10_000 },
        systemClock,
      );
      expect(listed.stdout).toContain('/dev/null');
      expect(listed.stdout).not.toMatch(/ptmx|pts/);
    });
  });

  describe('in use', () => {
    test('sends all output before it reports that the terminal is closed, even to a slow receiver', async () => {
      const shell = await link.open();
      shell.isTaking = false;
      await shell.type('stty -onlcr; head -c 1000000 /dev/zero | tr "\\\\0" x; exit 3\r');
      let count = 0;
      shell.onBytes = (bytes) => {
        for (const byte of bytes) if (byte === 0x78) count++;
      };
      await link.until('a full window', () => shell.shownBytes === limits.terminalOutputWindowBytes);
      expect(shell.exit).toBeNull();
      const slowly = setInterval(() => shell.take(), 1);
      expect(await shell.ended()).toEqual({ code: 3, signal: null });
      clearInterval(slowly);
      // The echoed line and `exit` also contain an x.
      expect(count).toBeGreaterThanOrEqual(1_000_000);
      expect(count).toBeLessThanOrEqual(1_000_004);
    });

    test('transmits 16 MB of output in frames that respect the rate limit', async () => {
      const shell = await link.open();
      await shell.run('stty -echo -opost');
      const before = shell.shownBytes;
      const frames = shell.frames.length;
      const startedAt = performance.now();
      await shell.type('head -c 16777216 /dev/zero; exit\r');
      await shell.ended();
      const seconds = (performance.now() - startedAt) / 1000;
      expect(shell.shownBytes - before).toBeGreaterThanOrEqual(16_777_216);
      expect(shell.shownBytes - before).toBeLessThan(16_777_216 + 100);
      const small = shell.frames.slice(frames).filter((length) => length < limits.terminalSmallFrameBytes).length;
      expect(small).toBeLessThanOrEqual(limits.terminalSmallFramesPerSecond * seconds + 10);
    });

    test('closes a terminal when its shell exits, even while background jobs print', async () => {
      const shell = await link.open();
      shell.isTaking = false;
      const own = numberIn(await shell.run('echo own=$$'), 'own');
      await shell.type('stty -opost; for job in 1 2 3 4; do cat /dev/zero & done; sleep 0.1; exit 4\r');
      await link.until('its exit', () => !runs(own));
      const slowly = setInterval(() => shell.take(), 20);
      expect(await shell.ended()).toEqual({ code: 4, signal: null });
      clearInterval(slowly);
      // The window and one frame were full when the shell exited. Only the kernel's buffer adds a little more.
      expect(shell.shownBytes).toBeLessThan(limits.terminalOutputWindowBytes + 128 * 1024);
    });

    test('blocks a program that prints until its output is acknowledged', async () => {
      const shell = await link.open();
      const output = await shell.run('sh -c \'echo pid=$$; exec yes\' > /dev/null & sleep 0; echo "own=$$"');
      expect(numberIn(output, 'own')).toBeGreaterThan(0);
      shell.isTaking = false;
      await shell.type('yes\r');
      await link.until(
        'a full window',
        () => shell.frames.length > 0 && shell.shownBytes > limits.terminalOutputWindowBytes,
      );
      const yes = Number(
        readFileSync(`/proc/${numberIn(output, 'own')}/stat`, 'latin1')
          .split(') ')[1]!
          .split(' ')[5],
      );
      const written = () => Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${yes}/io`, 'latin1'))?.[1]);
      // Waits until the program blocks, because on a busy machine, the program may not run between two checks.
      const waits = () => / S /.exec(readFileSync(`/proc/${yes}/stat`, 'latin1')) !== null;
      let [last, looks, shown] = [-1, 0, -1];
      await link.until('the writer to stand', () => {
        const isSame = waits() && written() === last && shell.shownBytes === shown;
        looks = isSame ? looks + 1 : 0;
        [last, shown] = [written(), shell.shownBytes];
        return looks === 20;
      });
      shell.take();
      await link.until('more', () => shell.shownBytes > shown);
    });

    test('passes on 10 MB of pasted text unchanged', async () => {
      const shell = await link.open();
      const paste = randomBytes(10 * 1024 * 1024);
      await shell.type(`stty raw -echo; echo rea"dy"; head -c ${paste.length} | sha256sum; stty sane; echo d"one"\r`);
      await shell.shows('ready');
      await shell.type(paste);
      await shell.shows('done', 60_000);
      expect(shell.text).toContain(createHash('sha256').update(paste).digest('hex'));
    });

    test('passes on many pasted lines without blocking', async () => {
      const shell = await link.open();
      await shell.type('stty -echo; echo rea"dy"; wc -c; echo d"one"\r');
      await shell.shows('ready');
      await shell.type(`${'x'.repeat(127)}\n`.repeat((1024 * 1024) / 128));
      await shell.type('\x04');
      await shell.shows('done', 60_000);
      expect(shell.text).toContain('\n1048576\r\n');
    });

    test('buffers input up to the window for a program that does not read, without blocking other terminals', async () => {
      const shell = await link.open();
      const other = await link.open();
      // Puts the commands in one line, because a shell in raw mode would also read a second line.
      await shell.type('stty raw -echo; echo rea"dy"; sleep 1000\r');
      await shell.shows('ready');
      const window = limits.terminalInputWindowBytes;
      await link.until('it to be full', () => {
        while (link.link.type(shell.channel, Buffer.alloc(1024, 'x')));
        return true;
      });
      expect(await other.run('echo still=$((3*3))')).toContain('still=9');
      const credited = link.messages.filter(
        ({ type, channel }) => type === 'terminal_credit' && channel === shell.channel,
      );
      expect(credited.length).toBeLessThan(3);
      expect(link.link.type(shell.channel, Buffer.alloc(window))).toBe(false);
    });
  });

  describe('that ends', () => {
    test('reports the exit code or the signal of a shell', async () => {
      const first = await link.open();
      await first.type('exit 7\r');
      expect(await first.ended()).toEqual({ code: 7, signal: null });
      const second = await link.open();
      await second.type('kill -KILL $$\r');
      expect(await second.ended()).toEqual({ code: null, signal: 'SIGKILL' });
      await link.until(
        'both in the log',
        () => link.logged.filter(({ message }) => message === 'terminal closed').length === 2,
      );
      expect(link.logged.map(({ message }) => message)).toEqual([
        'terminal opened',
        'terminal closed',
        'terminal opened',
        'terminal closed',
      ]);
      expect(link.logged[1]!.fields).toMatchObject({ operator: 'ann', shell: '/bin/sh', exit_code: 7, signal: null });
      expect(JSON.stringify(link.logged)).not.toContain('kill -KILL');
    });

    test('kills all processes of a closed terminal, even those that ignore SIGHUP, but not detached ones', async () => {
      const shell = await link.open({ shell: '/bin/bash' });
      const ready = mkdtempSync(join(tmpdir(), 'muster-terminal-'));
      const shown = await shell.run(
        `sleep 1001 & echo plain=$!; sh -c "trap '' HUP; touch ${ready}/deaf; exec sleep 1002" & echo deaf=$!; setsid sh -c "echo apart=\\$\\$; touch ${ready}/apart; exec sleep 1003" & while [ $(ls ${ready} | wc -l) != 2 ]; do sleep 0.02; done; echo own=$$`,
      );
      rmSync(ready, { recursive: true });
      const [plain, deaf, apart, own] = ['plain', 'deaf', 'apart', 'own'].map((name) => numberIn(shown, name)) as [
        number,
        number,
        number,
        number,
      ];
      try {
        for (const pid of [plain, deaf, apart, own]) expect(runs(pid)).toBe(true);
        shell.close();
        await shell.ended();
        expect(runs(own)).toBe(false);
        await link.until('the first job to end', () => !runs(plain));
        await link.until('the second to be ended', () => !runs(deaf));
        expect(runs(apart)).toBe(true);
      } finally {
        process.kill(apart);
      }
    });

    test('sends SIGHUP to the jobs of a shell that does not pass it on', async () => {
      const shell = await link.open({ shell: '/bin/sh' });
      const folder = mkdtempSync(join(tmpdir(), 'muster-terminal-'));
      const file = join(folder, 'told');
      const job = `trap "echo told > ${file}; exit" HUP; echo rea"dy"; while :; do sleep 0.02; done`;
      await shell.type(`sh -c '${job}' &\r`);
      await shell.shows('ready');
      shell.close();
      await link.until('the job to be told', () => existsSync(file));
      rmSync(folder, { recursive: true });
    });

    test('closes terminals when their link closes and when the agent stops', async () => {
      const first = await link.open();
      const own = numberIn(await first.run('echo own=$$'), 'own');
      link.link.end('the link is gone');
      await link.until('its end', () => !runs(own));
      expect(link.link.type(first.channel, Buffer.from('x'))).toBe(true);
      const second = await link.open();
      const other = numberIn(await second.run('echo own=$$'), 'own');
      await link.terminals.stop('the agent stops');
      expect(runs(other)).toBe(false);
      // Closing the link already reports the interruption.
      expect(second.exit).toBeNull();
      expect((await link.open()).answer).toMatchObject({ type: 'terminal_refused', code: 'disabled' });
    });

    test('closes all terminals when the configuration disables them', async () => {
      const shell = await link.open();
      link.settings = { ...link.settings, enabled: false };
      link.terminals.settingsChanged();
      await shell.ended();
      expect((await link.open()).answer).toMatchObject({ type: 'terminal_refused', code: 'disabled' });
    });

    test('reports both the opening and the exit of a terminal that is closed while it opens', async () => {
      // On a busy machine, the shell may take longer to exit than the agent waits for its exit code.
      link.after = (ms, action) => systemClock.after(ms < 1_000 ? ms : 60_000, action);
      const opening = link.open();
      link.link.receive({ type: 'terminal_close', channel: 1, reason: 'at once' });
      await (await opening).ended();
      expect(link.messages.map(({ type }) => type)).toEqual(['terminal_opened', 'terminal_exited']);
    });
  });

  describe('is refused', () => {
    test('refuses a terminal beyond the maximum number until one has been closed', async () => {
      link.settings = { ...link.settings, max_sessions: 1 };
      const first = await link.open();
      const second = await link.open();
      expect(second.answer).toMatchObject({ type: 'terminal_refused', code: 'limit' });
      first.close();
      await first.ended();
      // The terminal counts toward the maximum until its remaining processes have exited.
      await expect.poll(async () => (await link.open()).answer?.type, { interval: 20 }).toBe('terminal_opened');
    });

    test.each([
      ['as an unknown user', { user: 'no-such-user' }, null, 'failed', /no user no-such-user/],
      ['with a configured shell that does not exist', { shell: '/no/shell' }, null, 'failed', /remote_terminal.shell/],
      ['with a requested shell that is not listed', {}, '/usr/bin/env', 'shell_refused', /etc\/shells/],
      [
        'with a requested shell that the configuration does not allow',
        { allow_operator_shell_override: false },
        '/bin/sh',
        'shell_refused',
        /override/,
      ],
    ])('refuses to open a terminal %s', async (_name, settings, shell, code, message) => {
      link.settings = { ...link.settings, ...settings };
      const { answer } = await link.open({ shell });
      expect(answer).toMatchObject({ type: 'terminal_refused', code, message: expect.stringMatching(message) });
    });

    test('refuses a terminal while the agent has too many open files, and opens one afterwards', async () => {
      await link.open();
      // The limit allows the terminal and some of its program's pipes, but not all of them.
      for (const left of [2, 4, 6]) {
        const { answer } = await withFilesLeft(left, () => link.open());
        expect(answer).toMatchObject({
          type: 'terminal_refused',
          code: 'failed',
          message: expect.stringMatching(/EMFILE/),
        });
      }
    });

    test('refuses a channel number that was already used', async () => {
      await link.open();
      const again = { type: 'terminal_open', channel: 1, session_id: '0'.repeat(26), cols: 1, rows: 1 } as const;
      expect(link.link.receive({ ...again, shell: null, operator: 'ann' })).toBe(false);
      expect(link.link.receive({ type: 'terminal_close', channel: 2, reason: '' })).toBe(false);
      expect(link.link.type(2, Buffer.from('x'))).toBe(false);
      expect(link.link.receive({ type: 'terminal_credit', channel: 1, bytes: 1_000_000 })).toBe(false);
    });
  });
});
