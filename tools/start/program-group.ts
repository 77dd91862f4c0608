import { describeEnding, Program, ProgramError } from '../suite/program.ts';

export class StoppedWhileStarting extends Error {
  constructor() {
    super('Stopped while starting.');
  }
}

/** A group of programs. All of them stop when one exits or a signal arrives. */
export class ProgramGroup {
  readonly #programs: Program[] = [];
  #stopping: Promise<boolean> | null = null;
  #fail: (error: ProgramError) => void = () => {};
  /** Rejects with a ProgramError if a program exits before the group stops. */
  readonly failure: Promise<never>;
  /** Resolves on SIGINT, SIGTERM, or SIGHUP, and when the parent npm has exited. */
  readonly stopRequested: Promise<void>;

  constructor() {
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => {});
    this.stopRequested = new Promise((done) => {
      let first: number | null = null;
      const onSignal = () => {
        first ??= performance.now();
        // Ctrl-C in a terminal causes two signals: one directly, one through npm. Another Ctrl-C more than a second
        // later kills the programs.
        if (performance.now() - first > 1000) for (const program of this.#programs) program.kill('SIGKILL');
        done();
      };
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
      // Polls for the exit of npm, which cannot forward a signal that kills it.
      const parent = process.ppid;
      if (process.env.npm_lifecycle_event !== undefined)
        setInterval(() => {
          if (process.ppid !== parent) done();
        }, 500).unref();
    });
  }

  /**
   * Starts a program.
   * @throws StoppedWhileStarting if the group is stopping
   */
  run(options: ConstructorParameters<typeof Program>[0]): Program {
    if (this.#stopping !== null) throw new StoppedWhileStarting();
    const program = new Program(options);
    this.#programs.push(program);
    void program.ended.then((ending) => {
      if (this.#stopping === null) this.#fail(new ProgramError(program, `${program.name} ${describeEnding(ending)}`));
    });
    return program;
  }

  /**
   * Stops all programs in reverse order, so that agents disconnect before the orchestrator stops.
   * @returns true if each exited with code 0
   */
  stop(): Promise<boolean> {
    this.#stopping ??= this.#stopEach();
    return this.#stopping;
  }

  async #stopEach(): Promise<boolean> {
    const endings = [];
    for (const program of this.#programs.toReversed()) endings.push(await program.stop());
    return endings.every(({ code }) => code === 0);
  }
}
