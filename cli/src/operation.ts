import { hasEnded } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  getOperation,
  getOperationOutput,
  listAgentOperations,
  listModules,
  type Operation,
} from '@muster/protocol/http';
import type { Context } from './context.ts';
import { CliError, type Exit, exits } from './exit.ts';
import { nearest } from './nearest.ts';
import { lastLine } from './output-text.ts';
import { sanitiseLine } from './sanitise.ts';

/**
 * Has one agent plan or apply, and waits for its end. Whoever leaves meanwhile is told where the work is to be seen: it
 * does not end with this program.
 * @param work `begin` asks for it; `wait` false: only until it was taken
 */
export async function seeThrough(
  context: Pick<Context, 'out' | 'sleep' | 'onInterrupt'>,
  call: Client,
  work: { agent: string; doing: string; modules: readonly string[]; begin: () => Promise<Operation>; wait?: boolean },
): Promise<Operation> {
  const { agent, doing, modules, begin, wait = true } = work;
  const { out } = context;
  const progress = out.progress(`${agent}: ${doing}`);
  let known: string | null = null;
  const release = context.onInterrupt(() => {
    progress.end();
    const where = known === null ? `list --agent ${shellWord(agent)}` : `show ${known}`;
    out.note(`It goes on without you; see: muster operations ${where}`);
  });
  const endWatch = progress.isSeen
    ? watchOutput(context, call, agent, (line) => progress.update(`${agent}: ${doing}: ${line}`))
    : async () => {};
  try {
    const started = await begin();
    known = started.operation_id;
    return wait ? await awaitEnd(context, call, started) : started;
  } catch (error) {
    return await workRefused(call, agent, modules, error);
  } finally {
    release();
    await endWatch();
    progress.end();
  }
}

/** How often somebody who waits is told what is being printed. Milliseconds. */
const watchMs = 2_000;

/**
 * Tells what the script that the agent runs printed last, while that is waited for.
 * @returns ends it
 */
function watchOutput(
  { sleep }: Pick<Context, 'sleep'>,
  call: Client,
  node_id: string,
  tell: (line: string) => void,
): () => Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  const look = async (): Promise<string> => {
    const query = { status: 'running' as const, limit: '1' };
    const [operation] = (await call(listAgentOperations, { params: { node_id }, query, signal })).operations;
    if (operation === undefined) return '';
    const { operation_id } = operation;
    const { output } = await call(getOperationOutput, { params: { node_id, operation_id }, signal });
    const [place, running] = Object.entries(output).find(([, one]) => one.running) ?? [];
    const line = running === undefined ? '' : lastLine(running.stdout) || lastLine(running.stderr);
    return line === '' ? '' : sanitiseLine(`${place}: ${line}`);
  };
  // Whoever waits is told of the end all the same.
  let looking: Promise<unknown> = Promise.resolve();
  // In short ones: a program whose work is done does not stay for the rest of a long one.
  const pause = async () => {
    for (let left = watchMs; left > 0 && !signal.aborted; left -= 100) await sleep(100);
  };
  const watch = async () => {
    for (await pause(); !signal.aborted; await pause()) {
      const looked = look().catch(() => '');
      looking = looked;
      const line = await looked;
      if (!signal.aborted && line !== '') tell(line);
    }
  };
  void watch();
  return async () => {
    over.abort();
    await looking;
  };
}

/** Waits for what the orchestrator answered before it had ended. */
async function awaitEnd({ sleep }: Pick<Context, 'sleep'>, call: Client, started: Operation): Promise<Operation> {
  let operation = started;
  for (let wait = 500; !hasEnded(operation.status); wait = Math.min(wait * 2, 5000)) {
    await sleep(wait);
    operation = await call(getOperation, { params: { operation_id: operation.operation_id } });
  }
  return operation;
}

export function exitOfOperation({ status }: Pick<Operation, 'status'>): Exit {
  return status === 'succeeded' || !hasEnded(status) ? exits.done : exits.failed;
}

/** A word as a shell takes it: a module may have a space in its name. */
const shellWord = (text: string): string =>
  /^[\p{L}\p{N}_.@+-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The line that applies these modules on an agent, to be typed as it is. */
export const applyLine = (agent: string, modules: readonly string[], ...flags: string[]): string =>
  ['muster apply', shellWord(agent), ...modules.map((name) => `-m ${shellWord(name)}`), ...flags].join(' ');

/**
 * Tells why work was refused with what to do about it here: which module was probably meant, or how to have the work
 * done by an agent that is away.
 */
async function workRefused(call: Client, agent: string, wanted: readonly string[], error: unknown): Promise<never> {
  if (error instanceof ApiError && error.problem.code === 'agent_not_connected')
    throw new CliError(
      exits.unreachable,
      error.problem.code,
      error.problem.detail,
      `See when it was last heard: muster agents list. To have the work done when it comes back: ${applyLine(agent, wanted, ...(wanted.length === 0 ? ['--remove'] : []), '--yes', '--queue')}`,
      { cause: error },
    );
  if (!(error instanceof ApiError) || !['unknown_module', 'module_not_found'].includes(error.problem.code)) throw error;
  const known = (await call(listModules, {})).map(({ name }) => name);
  const unknown = wanted.filter((name) => !known.includes(name));
  const meant = unknown.flatMap((name) => nearest(name, known) ?? []);
  throw new CliError(
    exits.failed,
    error.problem.code,
    error.problem.detail,
    `${meant.length === 0 ? '' : `Did you mean ${meant.join(', ')}? `}See the modules there are: muster modules list`,
    { cause: error },
  );
}
