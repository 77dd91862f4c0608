import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root as repository } from '../../tools/suite/cli.ts';
import { afterFairTime } from '../../tools/suite/fair-time.ts';
import { eventually } from '../eventually.ts';
import { endControlGroups, makeControlGroups, removeControlGroups } from './control-groups.ts';
import { machineName, removeFolder } from './leftovers.ts';
import type { Bridge } from './network.ts';
import { differenceFromBase, type RootDifference } from './root-difference.ts';

/** Directory on a test host with a read-only mount of this repository, including Node.js in `node_modules/.bin`. */
export const repositoryInside = '/muster';

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

class CommandFailed extends Error {
  readonly ran: Ran;
  constructor(machine: string, command: readonly string[], ran: Ran) {
    super(`${machine}: ${command.join(' ')} ended with ${ran.code}: ${ran.stderr.trim() || ran.stdout.trim()}`);
    this.ran = ran;
  }
}

interface MachineOptions {
  name: string;
  /** Directory of the Debian root, the lower layer of the overlay. */
  base: string;
  /** Directory for the upper layer of the overlay. */
  folder: string;
  bridge: Bridge;
  /** Files to write into the root before the first boot, by path. */
  files: Readonly<Record<string, string>>;
  /** Whether the machine mounts this repository. */
  repository: boolean;
}

// The mounts are in a private mount namespace, which disappears with its last process. nspawn is the first process in a
// private PID namespace, because otherwise the guest's init would survive a killed nspawn.
const boot = `
set -e
for procs in $GROUPS_FILES; do echo $$ > "$procs"; done
mount -t overlay -o "lowerdir=$BASE,upperdir=$FOLDER/upper,workdir=$FOLDER/work,redirect_dir=off,metacopy=off,index=off" overlay "$FOLDER/root"
exec systemd-nspawn --quiet --boot --register=no --keep-unit --directory="$FOLDER/root" --machine="$SHORT" --hostname="$SHORT" \
  --network-namespace-path="/run/netns/$NAME" --capability=CAP_NET_ADMIN --link-journal=no --resolv-conf=off --timezone=off \
  \${REPOSITORY:+--bind-ro="$REPOSITORY:${repositoryInside}"} --kill-signal=SIGRTMIN+4 --console=pipe
`;

/** Capabilities that a guest is not granted, because they affect the machine that runs the tests. */
const withheld = '-sys_time,-sys_module,-sys_boot,-sys_rawio';
const environment = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LANG=C.UTF-8'];
/** Exit code of nspawn when the guest requested a reboot. */
const rebootCode = 133;
/** SIGRTMIN+4. systemd powers the machine off when it receives this signal. */
const powerOffSignal = 38;
const bootLimitMs = 180_000;

/** A test host: a container with its own root and network, and with systemd as its first process. */
export class Machine {
  readonly name: string;
  readonly address: string;
  readonly #options: MachineOptions;
  #nspawn: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #leader = 0;
  #boots = 0;
  #console = '';

  constructor(options: MachineOptions) {
    this.#options = options;
    this.name = options.name;
    this.address = options.bridge.join(options.name);
    this.#makeDisk();
  }

  #makeDisk(): void {
    const { folder, files } = this.#options;
    for (const name of ['upper', 'work', 'root']) mkdirSync(join(folder, name), { recursive: true });
    for (const [path, content] of Object.entries({ '/etc/hostname': `${this.name}\n`, ...files })) {
      mkdirSync(dirname(join(folder, 'upper', path)), { recursive: true });
      writeFileSync(join(folder, 'upper', path), content);
    }
  }

  /**
   * Starts the machine, for the first time or after a stop or a power failure. Resolves when systemd has completed the boot.
   */
  async start(): Promise<void> {
    if (this.#nspawn !== null) throw new Error(`the machine ${this.name} is already running`);
    this.#launch();
    await this.#up(1);
  }

  #launch(): void {
    const { base, folder, repository: seesRepository } = this.#options;
    const env = {
      PATH: process.env.PATH,
      SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1',
      // Makes only the kernel parameters in the guest's network namespace writable.
      SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network',
      GROUPS_FILES: makeControlGroups(machineName(this.name)).join(' '),
      BASE: base,
      FOLDER: folder,
      NAME: machineName(this.name),
      SHORT: this.name,
      REPOSITORY: seesRepository ? repository : '',
    };
    // `--pdeathsig` and `--kill-child` kill the machine when the test run is killed.
    const alone = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const args = ['--pdeathsig', 'KILL', '--', 'unshare', ...alone, 'sh', '-c', boot];
    const nspawn = spawn('setpriv', args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const read = (piece: Buffer) => {
      this.#console = (this.#console + piece.toString()).slice(-20_000);
    };
    nspawn.stdout.on('data', read);
    nspawn.stderr.on('data', read);
    this.#nspawn = nspawn;
    this.#boots++;
    this.#ended = new Promise((resolve) => {
      nspawn.on('error', (error) => read(Buffer.from(`${error.message}\n`)));
      nspawn.on('close', (code) => {
        this.#nspawn = null;
        this.#leader = 0;
        if (code === rebootCode) this.#launch();
        resolve();
      });
    });
  }

  /** Number of boots since the machine was created. */
  get boots(): number {
    return this.#boots;
  }

  /** PID of the machine's systemd on this host; 0 while the machine is off. */
  get leader(): number {
    return this.#leader;
  }

  /** Waits until the machine has booted `more` times and systemd has completed the last boot. */
  async #up(more: number): Promise<void> {
    const expectedBoots = this.#boots + more - 1;
    try {
      await eventually(
        `the machine ${this.name} has booted`,
        async () => {
          if (this.#nspawn === null) throw new Error('systemd-nspawn has exited');
          if (this.#boots < expectedBoots) return null;
          this.#leader ||= this.#findLeader();
          if (this.#leader === 0 || !existsSync(`${this.rootPath}/run/systemd/private`)) return null;
          const { stdout } = await this.run(['systemctl', 'is-system-running', '--wait']);
          return /running|degraded/.test(stdout) ? true : null;
        },
        bootLimitMs,
      );
    } catch (error) {
      throw new Error(`the machine ${this.name} failed to boot: ${this.#console}`, { cause: error });
    }
  }

  #findLeader(): number {
    const childrenOf = (pid: string | number) =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    try {
      const children = childrenOf(this.#nspawn?.pid ?? 0).flatMap(childrenOf);
      const init = children.find((child) => readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'systemd');
      return Number(init ?? 0);
    } catch {
      return 0;
    }
  }

  /** Path of the machine's root on this host. Valid while the machine runs. */
  get rootPath(): string {
    return `/proc/${this.#leader}/root`;
  }

  /** Returns the command on this host that runs a command on the machine as root. */
  entering(command: readonly string[], env: Readonly<Record<string, string>> = {}): string[] {
    if (this.#leader === 0) throw new Error(`the machine ${this.name} is off`);
    const enter = ['-t', String(this.#leader), '-m', '-p', '-u', '-i', '-n', '-C', '-r', '-w', '--'];
    const drop = ['setpriv', '--pdeathsig', 'KILL', '--bounding-set', withheld, '--inh-caps', '-all', '--'];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    return ['nsenter', ...enter, ...drop, 'env', '-i', ...environment, ...variables, ...command];
  }

  /** Starts a command on the machine as root, with a minimal environment. */
  begin(command: readonly string[], stdin: 'ignore' | 'pipe' = 'ignore'): ChildProcess {
    const [file, ...args] = this.entering(command);
    return spawn(file as string, args, { stdio: [stdin, 'pipe', 'pipe'] });
  }

  /** Runs a command on the machine until it exits. Does not throw for a nonzero exit code. */
  async run(command: readonly string[], { input = null as string | null, timeoutMs = 300_000 } = {}): Promise<Ran> {
    const child = this.begin(command, input === null ? 'ignore' : 'pipe');
    child.stdin?.on('error', () => {});
    if (input !== null) child.stdin?.end(input);
    const collected: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    child.stdout?.on('data', (piece: Buffer) => collected.stdout.push(piece));
    child.stderr?.on('data', (piece: Buffer) => collected.stderr.push(piece));
    const cancel = afterFairTime(timeoutMs, () => child.kill('SIGKILL'));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    cancel();
    const text = (pieces: Buffer[]) => Buffer.concat(pieces).toString('utf8');
    return { code, stdout: text(collected.stdout), stderr: text(collected.stderr) };
  }

  /**
   * Runs a command on the machine.
   * @returns the standard output
   * @throws CommandFailed if the exit code is not 0
   */
  async exec(...command: string[]): Promise<string> {
    const ran = await this.run(command);
    if (ran.code !== 0) throw new CommandFailed(this.name, command, ran);
    return ran.stdout;
  }

  /**
   * Runs shell text on the machine with `sh -euc`, which stops at the first failing command.
   * @throws CommandFailed if the exit code is not 0
   */
  async sh(text: string): Promise<string> {
    return await this.exec('sh', '-euc', text);
  }

  /** Returns the differences between the machine's root and the base root. The machine must be running. */
  changes(volatile?: readonly string[]): RootDifference {
    if (this.#leader === 0) throw new Error(`the machine ${this.name} is off`);
    const { base, folder } = this.#options;
    return differenceFromBase({ base, upper: join(folder, 'upper'), merged: this.rootPath, volatile });
  }

  /** Shuts the machine down cleanly and keeps its disk. */
  async stop(): Promise<void> {
    const ended = this.#ended;
    if (this.#leader > 0) process.kill(this.#leader, powerOffSignal);
    const cancel = afterFairTime(60_000, () => this.#nspawn?.kill('SIGKILL'));
    await ended;
    cancel();
    await endControlGroups(machineName(this.name));
  }

  /** Kills the machine without a shutdown and keeps its disk. */
  async powerCut(): Promise<void> {
    const ended = this.#ended;
    this.#nspawn?.kill('SIGKILL');
    await endControlGroups(machineName(this.name));
    await ended;
  }

  /** Reboots the machine from within. */
  async reboot(): Promise<void> {
    const before = this.#boots;
    await this.run(['systemctl', 'reboot']);
    await this.rebooted(before);
  }

  /**
   * Waits until the machine has rebooted from within, and systemd has completed the boot.
   * @param before number of boots before the reboot
   */
  async rebooted(before: number): Promise<void> {
    await eventually(`the machine ${this.name} has rebooted`, async () => (this.#boots > before ? true : null));
    await this.#up(0);
  }

  /** Resets the root to its state before the first boot. The machine is off afterward. */
  async wipe(): Promise<void> {
    await this.powerCut();
    const { folder } = this.#options;
    for (const name of ['upper', 'work']) await removeFolder(join(folder, name));
    this.#makeDisk();
  }

  /** Removes the machine and all its resources. */
  async end(): Promise<void> {
    await this.powerCut();
    removeControlGroups((name) => name === machineName(this.name));
    this.#options.bridge.leave(this.name);
    await removeFolder(this.#options.folder);
  }

  /** Returns the last output on the machine's console, for printing after a failed test. */
  report(): string {
    return `── ${this.name} (${this.address}, booted ${this.#boots} times)\n${this.#console}`;
  }
}
