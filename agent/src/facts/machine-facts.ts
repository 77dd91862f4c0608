import { hostname } from 'node:os';
import type { Clock } from '../../../lib/src/clock.ts';
import { PathWatch } from '../host/files/path-watch.ts';
import { namesIn, stampOf } from '../host/read-system.ts';
import { gatherFacts } from './facts.ts';

/** How often the machine is looked at in any case: not all that attributes come from can be watched. */
const intervalMs = 10 * 60_000;
/** Saving a file makes a burst of events; the last one counts. */
const quietMs = 100;
/** From one look that an event asked for to the next: what keeps changing must not keep the agent at it. */
const pauseMs = 500;
/** From a look to a glance at whether it came too early: a tool writes /etc/hostname before it tells the kernel. */
const glanceMs = 1000;

/** Where built-in attributes come from that change while an agent runs. */
const watched = ['/etc/hostname', '/etc/localtime', '/etc/timezone', '/etc/os-release', '/usr/lib/os-release'];

export interface MachineFactsOptions {
  factsDir: string;
  hostname: string | null;
  clock: Clock;
  log: {
    debug(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
  /** Where /etc, /proc, /run and /sys are, for tests. */
  root?: string;
}

/** The attributes of this machine: as they are at the start, and soon after they change. */
export class MachineFacts {
  attributes: Record<string, string> = {};
  readonly #options: MachineFactsOptions;
  /** What was said of the owner's files, so that it is said once. */
  #said = new Set<string>();
  #stamp = '';
  #changed: (() => void) | null = null;
  #gathering: Promise<boolean> | null = null;
  #again = false;
  /** Something moved while the machine was looked at: perhaps only what a program there writes. */
  #moved = false;
  /** How many looks in a row that was so. */
  #unquiet = 0;
  #gatheredAt = Number.NEGATIVE_INFINITY;
  #callOffSoon = () => {};
  #callOffGlance = () => {};
  #callOffLater = () => {};
  #callOffInterval = () => {};
  #watch: PathWatch | null = null;

  constructor(options: MachineFactsOptions) {
    this.#options = options;
  }

  /** @returns whether anything is other than it was */
  async gather(): Promise<boolean> {
    const { log, factsDir, root = '' } = this.#options;
    const said = new Set<string>();
    const system = systemStamp(root);
    const gathered = await gatherFacts({
      ...this.#options,
      warn: (file, problem) => {
        const what = `${file}\n${problem}`;
        if (!this.#said.has(what) && !said.has(what)) log.warn({ file, problem }, 'a fact is left out');
        said.add(what);
      },
    });
    this.#said = said;
    // After what a program there may have written itself, which is no reason to run it again.
    this.#stamp = `${system}\n${ownerStamp(factsDir)}`;
    this.#gatheredAt = this.#options.clock.monotonic();
    if (JSON.stringify(gathered) === JSON.stringify(this.attributes)) return false;
    this.attributes = gathered;
    return true;
  }

  /** @param changed called when attributes are other than they were */
  follow(changed: () => void): void {
    const { clock, log, factsDir, root = '' } = this.#options;
    this.#changed = changed;
    this.#watch = new PathWatch({
      clock,
      changed: () => this.#soon(),
      warn: (fields, message) => log.debug(fields, message),
    });
    this.#watch.set([...watched.map((path) => root + path), `${factsDir}/`]);
    this.#scheduleInterval();
    // What changed between the first look and the watch.
    this.#soon();
  }

  /** Something was done to this machine that may have changed what is said of it. */
  look(): void {
    if (this.#changed === null) return;
    if (this.#gathering !== null) {
      this.#again = true;
      return;
    }
    this.#gathering = this.gather();
    this.#gathering
      .then((differs) => {
        if (differs) this.#changed?.();
      })
      .catch((error: unknown) =>
        this.#options.log.warn({ error }, 'the attributes of this machine could not be gathered'),
      )
      .finally(() => {
        this.#gathering = null;
        const moved = this.#moved;
        this.#moved = false;
        if (this.#again) {
          this.#again = false;
          return this.look();
        }
        if (!moved) this.#unquiet = 0;
        // A program that writes beside itself would be run for ever: it is asked again, ever later.
        else if (this.#changed !== null) this.#later(Math.min(pauseMs * 2 ** ++this.#unquiet, intervalMs));
        this.#glance();
      });
  }

  end(): void {
    this.#changed = null;
    this.#watch?.end();
    this.#callOffSoon();
    this.#callOffGlance();
    this.#callOffLater();
    this.#callOffInterval();
  }

  #soon(): void {
    const { clock } = this.#options;
    this.#callOffSoon();
    const wait = Math.max(quietMs, this.#gatheredAt + pauseMs - clock.monotonic());
    this.#callOffSoon = clock.after(wait, () => {
      if (this.#gathering !== null) this.#moved = true;
      else if (this.#isStale()) this.look();
    });
  }

  #later(ms: number): void {
    this.#callOffLater();
    this.#callOffLater = this.#options.clock.after(ms, () => this.look());
  }

  #glance(): void {
    if (this.#changed === null) return;
    this.#callOffGlance();
    this.#callOffGlance = this.#options.clock.after(glanceMs, () => {
      if (this.#isStale()) this.look();
    });
  }

  #scheduleInterval(): void {
    this.#callOffInterval = this.#options.clock.after(intervalMs, () => {
      this.look();
      this.#scheduleInterval();
    });
  }

  #isStale(): boolean {
    const { factsDir, root = '' } = this.#options;
    return `${systemStamp(root)}\n${ownerStamp(factsDir)}` !== this.#stamp;
  }
}

const systemStamp = (root: string): string =>
  [hostname(), ...watched.map((path) => `${path} ${stampOf(root + path)}`)].join('\n');

const ownerStamp = (factsDir: string): string =>
  namesIn(factsDir)
    .map((name) => `${name} ${stampOf(`${factsDir}/${name}`)}`)
    .join('\n');
