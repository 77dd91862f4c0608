import { AptRepository } from '../apt-repository.ts';
import { DrivenAgent } from '../driven-agent.ts';
import type { Machine } from '../machine.ts';
import type { TestHosts } from '../test-hosts.ts';
import type { Subject } from './subject.ts';

/** Provides a clean machine for each subject. The next machine boots while the current one is in use. */
export class SubjectMachines {
  readonly #hosts: TestHosts;
  readonly #expected: number;
  #count = 0;
  #next: Promise<Prepared> | null = null;
  #current: Prepared | null = null;
  #isClean = false;
  #repository: Promise<AptRepository> | null = null;
  readonly #leaving: Promise<void>[] = [];

  /** @param expected number of machines to boot in advance; each failed test needs an additional machine */
  constructor(hosts: TestHosts, expected: number) {
    this.#hosts = hosts;
    this.#expected = expected;
  }

  /**
   * Returns a machine that is prepared for the subject, with an agent without data. Removes the previous machine, unless
   * it was returned clean.
   */
  async take(subject: Subject): Promise<Prepared> {
    const prepared = await (this.#current !== null && this.#isClean ? this.#again(this.#current) : this.#new());
    this.#isClean = false;
    const { machine } = prepared;
    if (subject.packages === true) {
      this.#repository ??= AptRepository.open(this.#hosts);
      await (await this.#repository).use(machine);
    }
    if (subject.prepare !== undefined) await machine.sh(subject.prepare);
    return prepared;
  }

  /** Keeps the machine of a subject whose state is the same as before, unless preparing the subject changed it. */
  giveBack({ prepare, packages, volatile }: Subject): void {
    this.#isClean = prepare === undefined && packages !== true && volatile === undefined;
  }

  async #again(prepared: Prepared): Promise<Prepared> {
    await prepared.agent.forget();
    return prepared;
  }

  async #new(): Promise<Prepared> {
    this.#leave();
    this.#current = await (this.#next ?? this.#boot());
    this.#next = this.#count < this.#expected ? this.#boot() : null;
    // Prevents an unhandled rejection. The next call awaits the same promise and reports the error.
    this.#next?.catch(() => {});
    return this.#current;
  }

  async #boot(): Promise<Prepared> {
    const machine = await this.#hosts.start(`subject-${++this.#count}`);
    return { machine, agent: await DrivenAgent.start(machine) };
  }

  #leave(): void {
    const current = this.#current;
    this.#current = null;
    if (current !== null) this.#leaving.push(current.machine.end());
  }

  async end(): Promise<void> {
    this.#leave();
    await (await this.#repository)?.end();
    await this.#next?.catch(() => {});
    await Promise.all(this.#leaving);
  }
}

export interface Prepared {
  machine: Machine;
  agent: DrivenAgent;
}

/** Returns the part of a machine's state that the subject can change and that its removal must restore. */
export async function stateOf(machine: Machine, { state, volatile }: Subject): Promise<Record<string, string>> {
  const changes = machine.changes(volatile);
  return state === undefined ? changes : { ...changes, state: await machine.sh(state) };
}
