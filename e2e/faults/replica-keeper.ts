import { writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Orchestrator } from '../stage.ts';

/** Milliseconds until a replica that exited is restarted, as by a service manager. */
const restartMs = 500;

/** Keeps a replica running, except while it is killed, and can suspend it and shift its clock. */
export class ReplicaKeeper {
  readonly orchestrator: Orchestrator;
  readonly #clockFile: string;
  #wanted = true;
  #running: Promise<void> = Promise.resolve();

  constructor(orchestrator: Orchestrator) {
    this.orchestrator = orchestrator;
    this.#clockFile = join(dirname(orchestrator.dataDir), `clock-of-${basename(orchestrator.dataDir)}`);
    this.shiftClock(0);
    const preload = join(import.meta.dirname, 'shifted-clock.ts');
    orchestrator.set({ NODE_OPTIONS: `--import=${preload}`, SHIFTED_CLOCK: this.#clockFile });
  }

  /** Begins to restart the replica whenever it exits. The replica must be running. */
  watch(): void {
    this.#running = this.#keep();
  }

  async #keep(): Promise<void> {
    while (this.#wanted) {
      await this.orchestrator.program.ended;
      if (!this.#wanted) return;
      await sleep(restartMs);
      await this.#start();
    }
  }

  async #start(): Promise<void> {
    // While the database is away, the process exits; its supervisor tries again.
    while (this.#wanted && !(await hasStarted(this.orchestrator))) await sleep(restartMs);
  }

  /** Kills the process, and does not restart it. */
  async kill(): Promise<void> {
    this.#wanted = false;
    await this.orchestrator.kill9();
    await this.#running;
  }

  /** Starts the process after it was killed, and keeps it running. */
  restart(): void {
    this.#wanted = true;
    this.#running = this.#start().then(() => this.#keep());
  }

  suspend(): void {
    this.orchestrator.program.kill('SIGSTOP');
  }

  resume(): void {
    this.orchestrator.program.kill('SIGCONT');
  }

  /** Sets the difference between the process's wall clock and the real time. */
  shiftClock(byMs: number): void {
    writeFileSync(this.#clockFile, String(byMs));
  }

  /** Ends the process permanently. */
  async end(): Promise<void> {
    this.resume();
    await this.kill();
  }
}

const hasStarted = (orchestrator: Orchestrator): Promise<boolean> =>
  orchestrator.start().then(
    () => true,
    () => false,
  );
