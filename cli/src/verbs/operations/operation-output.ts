import { hasEnded } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { getOperation, getOperationOutput, type OperationOutput } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { exitOfOperation } from '../../execution/operation.ts';
import type { Exit } from '../../exit.ts';
import { newText } from '../../text/output-text.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';
import { findOperation } from './find-operation.ts';

/** Polling interval in milliseconds. The orchestrator receives script output about once a second. */
const askMs = 1_000;

/** Prints the output of an operation's scripts. With `--follow`, continues until the operation has finished. */
export async function output(context: Context, id: string, options: { follow?: boolean }): Promise<Exit> {
  const { out, sleep } = context;
  const { call } = await context.connect();
  const operation_id = await findOperation(call, id);
  const shown = new Shown(context);
  for (;;) {
    // Reads the operation before its output, because the output is complete only if the operation had already finished.
    const operation = await call(getOperation, { params: { operation_id } });
    const { node_id } = operation;
    const answer = await call(getOperationOutput, { params: { node_id, operation_id } });
    const isOver = !options.follow || hasEnded(operation.status);
    if (!out.json) shown.show(answer.output);
    else if (isOver) out.data(answer);
    if (isOver) {
      if (!out.json && Object.keys(answer.output).length === 0)
        out.note('The scripts of this operation have printed nothing.');
      return options.follow ? exitOfOperation(operation) : 0;
    }
    await sleep(askMs);
  }
}

/** Prints an operation's output until the operation has finished. With `--json`, only waits. */
export async function followOutput(
  context: Context,
  call: Client,
  operation_id: string,
  progress: { update(text: string): void; end(): void },
): Promise<void> {
  const { out, sleep } = context;
  const shown = new Shown(context);
  for (;;) {
    const { node_id, status } = await call(getOperation, { params: { operation_id } });
    const { output } = await call(getOperationOutput, { params: { node_id, operation_id } });
    // The spinner must not share a line with the output.
    if (Object.keys(output).length > 0) progress.end();
    if (!out.json) shown.show(output);
    if (hasEnded(status)) return;
    progress.update(`the operation is ${status}`);
    await sleep(askMs);
  }
}

type One = OperationOutput['output'][string];

/** Tracks the printed output, so that each part is printed only once. */
class Shown {
  readonly #context: Context;
  readonly #before = new Map<string, One>();
  #resourceKey = '';
  #stream = '';
  #isLineOpen = false;

  constructor(context: Context) {
    this.#context = context;
  }

  show(output: OperationOutput['output']): void {
    const { color } = this.#context.out.style;
    for (const [resourceKey, now] of Object.entries(output)) {
      const before = this.#before.get(resourceKey);
      this.#before.set(resourceKey, now);
      this.#write(resourceKey, 'stdout', newText(before?.stdout ?? '', now.stdout), (text) => text);
      this.#write(resourceKey, 'stderr', newText(before?.stderr ?? '', now.stderr), color.red);
      // The output of a finished script is printed only once.
      if (now.running || (before !== undefined && !before.running)) continue;
      this.#head(resourceKey);
      this.#line(color.dim(`${now.truncated ? '(output was truncated) ' : ''}${endOf(now)}`));
    }
  }

  #head(resourceKey: string): void {
    if (this.#resourceKey === resourceKey) return;
    this.#resourceKey = resourceKey;
    this.#line(this.#context.out.style.color.bold(sanitiseLine(resourceKey)));
  }

  #line(text: string): void {
    if (this.#isLineOpen) this.#context.out.raw('\n');
    this.#context.out.raw(`${text}\n`);
    this.#isLineOpen = false;
  }

  #write(resourceKey: string, stream: 'stdout' | 'stderr', text: string, paint: (text: string) => string): void {
    if (text === '') return;
    this.#head(resourceKey);
    // Each stream starts on its own line.
    if (this.#isLineOpen && this.#stream !== stream) this.#context.out.raw('\n');
    this.#stream = stream;
    this.#context.out.raw(paint(sanitise(text)));
    this.#isLineOpen = !text.endsWith('\n');
  }
}

const endOf = ({ exit_code }: One): string => (exit_code === null ? 'did not end' : `exit ${exit_code}`);
