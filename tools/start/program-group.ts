import { describeEnding, Program, ProgramError } from '../suite/program.ts';

export class StoppedWhileStarting extends Error {
  constructor() {
    super('Stopped while starting.');
  }
}

/** Programs that run together: when one ends or a signal comes, all of them stop. */
export class ProgramGroup {
  readonly #programs: Program[] = [];
  #stopping: Promise<boolean> | null = null;
  #fail: (error: ProgramError) => void = () => {};
  /** Rejects with a ProgramError when a program ends before the group is stopped. */
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
        // One Ctrl-C comes twice, from the terminal and from npm. A second one, later, stops at once.
        if (performance.now() - first > 1000) for (const program of this.#programs) program.kill('SIGKILL');
        done();
      };
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
      // An npm that was killed cannot forward its signal.
      const parent = process.ppid;
      if (process.env.npm_lifecycle_event !== undefined)
        setInterval(() => {
          if (process.ppid !== parent) done();
        }, 500).unref();
    });
  }

  /** @throws StoppedWhileStarting */
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
   * Stops all programs, the last one first: an agent says goodbye to an orchestrator that still runs.
   * @returns true when each ended with exit code 0
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
