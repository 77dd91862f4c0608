import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareOutput, filledIn, type Samples, type Session, sessionsOf } from '../../tools/docs/console.ts';
import { root as repository } from '../../tools/suite/cli.ts';
import { FairTime } from '../../tools/suite/fair-time.ts';
import type { Machine } from './machine.ts';
import { Seat } from './seat.ts';

/** Milliseconds of fair time for which a command is repeated until its output matches the page. */
const patienceMs = 90_000;

/** Types the commands on a documentation page on the machines that its prompts name, and compares the output. */
export class Walk {
  readonly #machines: ReadonlyMap<string, Machine>;
  readonly #seats = new Map<string, Seat>();
  readonly #shown: string[] = [];
  readonly #faults: string[] = [];
  /** Real IDs, by sample ID on the page. */
  #samples: Samples = new Map();

  readonly #file: string;

  /** @param transcript file for the commands and their output, for debugging */
  constructor(machines: readonly Machine[], transcript: string) {
    this.#machines = new Map(machines.map((machine) => [machine.name, machine]));
    this.#file = transcript;
    mkdirSync(dirname(transcript), { recursive: true });
    writeFileSync(transcript, '');
  }

  #print(...lines: string[]): void {
    this.#shown.push(...lines);
    appendFileSync(this.#file, lines.map((line) => `${line.trimEnd()}\n`).join(''));
  }

  /**
   * Runs all commands on a page.
   * @throws Error that lists the commands whose output differs from the page; immediately if a command does not finish
   */
  async through(page: string): Promise<void> {
    for (const session of sessionsOf(readFileSync(join(repository, page), 'utf8'))) await this.#session(page, session);
    if (this.#faults.length > 0) throw new Error(this.#faults.join('\n\n'));
  }

  async #session(page: string, { steps, typed, copied, repeated, line }: Session): Promise<void> {
    const first = steps[0]?.prompt ?? '';
    for (const { file, to } of copied) await this.#copy(file, to);
    const answers = [...typed];
    const seat = this.#seat(first);
    for (const [index, step] of steps.entries()) {
      const command = filledIn(step.command, this.#shown, this.#samples);
      // After the last command, the shell shows the first prompt again.
      const next = steps[index + 1]?.prompt ?? first;
      const type = async () => {
        const lines = await seat.type(step, command, next, answers).catch((error: Error) => {
          this.#print(seat.view);
          this.#faults.push(`${page}:${step.line} ${command}\n${error.message}`);
          throw new Error(this.#faults.join('\n\n'), { cause: error });
        });
        this.#print(`${step.prompt} ${command.replaceAll('\n', '\n> ')}`, ...lines);
        return { lines, compared: compareOutput(step.expected, lines, this.#samples) };
      };
      let { lines, compared } = await type();
      const time = new FairTime();
      while (repeated && compared.fault !== null && time.elapsedMs() < patienceMs) {
        await sleep(1000);
        ({ lines, compared } = await type());
      }
      if (compared.fault === null) this.#samples = compared.samples;
      else this.#faults.push(`${page}:${step.line} ${command}\n${compared.fault}\n${lines.join('\n')}`);
    }
    this.#print('');
    if (answers.length > 0)
      this.#faults.push(`${page}:${line} the commands asked no question for the answers ${JSON.stringify(answers)}`);
  }

  #machine(name: string): Machine {
    const machine = this.#machines.get(name);
    if (machine === undefined) throw new Error(`the prompt names an unknown machine "${name}"`);
    return machine;
  }

  #seat(prompt: string): Seat {
    const who = prompt.split(':')[0] as string;
    const known = this.#seats.get(who);
    if (known) return known;
    const [user, name] = who.split('@') as [string, string];
    const seat = new Seat(this.#machine(name), user);
    this.#seats.set(who, seat);
    return seat;
  }

  async #copy(file: string, to: string): Promise<void> {
    const [who, path] = to.split(':') as [string, string];
    const [user, name] = who.split('@') as [string, string];
    const input = readFileSync(join(repository, file), 'utf8');
    const { code, stderr } = await this.#machine(name).run(['su', '--login', user, '-c', `cat > '${path}'`], { input });
    if (code !== 0) throw new Error(`cannot copy ${file} to ${to}: ${stderr}`);
  }

  end(): void {
    for (const seat of this.#seats.values()) seat.end();
    this.#seats.clear();
  }
}
