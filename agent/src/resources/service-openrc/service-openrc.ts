import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import {
  levelExists,
  levelsOf,
  linkOf,
  rcService,
  rcUpdate,
  readServices,
  type ServiceStates,
  startedLink,
  stateOf,
  whenStarted,
} from '../../host/systemd/openrc.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Database, Difference, Item, Machine, Outcome } from '../provider/provider.ts';
import {
  bodyOf,
  diffRc,
  diffRcRemoval,
  isLive,
  isUp,
  levelOf,
  type Moves,
  movesBack,
  type RcBefore,
  runsBack,
  type SeenRc,
} from './diff.ts';

const services: Database<ServiceStates> = {
  name: 'OpenRC services',
  read: (machine) => readServices(machine.limits.checkMs, machine),
};

/** An OpenRC service: a script in /etc/init.d, its run level, and whether it is running. */
export const serviceOpenrc = defineProvider<'service-openrc', SeenRc, RcBefore>({
  type: 'service-openrc',
  fields: { name: 'text', enabled: 'boolean?', running: 'boolean?', runlevel: 'text?', ensure: 'text?' },
  recheckable: false,

  watched(resource) {
    const body = bodyOf(resource);
    return [linkOf(body.name, levelOf(body)), startedLink(body.name)];
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffRc,

  async remember(resource, seen, difference, before) {
    const { leave, enter } = movesIn(resource, seen, difference);
    const levels = { ...(before?.levels ?? {}) };
    for (const level of [...leave, ...enter]) levels[level] ??= seen.levels.includes(level);
    const runs = difference.changes.some(({ field }) => field === 'running' || field === 'ensure');
    return { levels, running: before?.running ?? (runs ? isUp(seen) : null) };
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (resource, before, seen) => diffRcRemoval(resource, before, seen),

  /** OpenRC cannot change several services in one command. This method exists only so that restarts are journaled. */
  async together(items, machine) {
    const outcomes: Outcome[] = [];
    for (const item of items) outcomes.push(await execute(item, machine));
    return outcomes;
  },

  wasApplied(resource, brief, seenNow, original) {
    if (original.action === 'remove') return true;
    const untriggered = { purpose: 'apply', restartBy: [], succeeded: resource } as const;
    if (diffRc(resource, seenNow, untriggered).action !== 'none') return false;
    return original.action !== 'restart' || seenNow.startedAt !== (brief as unknown as SeenRc).startedAt;
  },
});

async function look(resource: ResolvedResource, machine: Machine): Promise<SeenRc> {
  const { name, ...body } = bodyOf(resource);
  const states = await machine.database(services);
  return {
    state: stateOf(name, states),
    levels: levelsOf(name),
    levelExists: levelExists(levelOf({ name, ...body })),
    startedAt: whenStarted(name),
  };
}

/** Returns the run levels that a difference changes. */
function movesIn(resource: ResolvedResource, seen: SeenRc, { changes }: Difference): Moves {
  const body = bodyOf(resource);
  const moves: Moves = { leave: [], enter: [] };
  for (const { field, from, to } of changes) {
    if (field === 'ensure' && to === 'absent') moves.leave.push(...seen.levels);
    if (field === 'enabled') moves[to === 'true' ? 'enter' : 'leave'].push(levelOf(body));
    if (field === 'runlevel') {
      moves.leave.push(...(from ?? '').split(' '));
      moves.enter.push(levelOf(body));
    }
  }
  return moves;
}

async function execute(item: Item<SeenRc, RcBefore>, machine: Machine): Promise<Outcome> {
  const { kind, resource, seen, difference, before } = item;
  const { name } = bodyOf(resource);
  const timeLimit = machine.limits.scriptMs;
  const back = kind === 'remove' && before !== null;
  const moves = back ? movesBack(before, seen) : movesIn(resource, seen, difference);
  try {
    for (const level of moves.leave) {
      const { stdout, stderr, ...ended } = await rcUpdate('del', name, level, timeLimit, machine);
      expectDone(ended, `${stdout}${stderr}`, `${name} was not removed from run level ${level}`, timeLimit);
    }
    for (const level of moves.enter) {
      const { stdout, stderr, ...ended } = await rcUpdate('add', name, level, timeLimit, machine);
      expectDone(ended, `${stdout}${stderr}`, `${name} was not added to run level ${level}`, timeLimit);
    }
    const verb = back ? verbBack(before, seen) : verbIn(seen, difference);
    if (verb !== null) await act(name, verb, machine);
    return {};
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { failure: error.message };
  } finally {
    machine.stale(services);
  }
}

function verbIn(seen: SeenRc, { action, changes }: Difference): string | null {
  if (action === 'restart') return 'restart';
  if (changes.some(({ field, to }) => field === 'ensure' && to === 'absent')) return isLive(seen) ? 'stop' : null;
  const running = changes.find(({ field }) => field === 'running');
  if (running === undefined) return null;
  if (running.to !== 'true') return 'stop';
  // OpenRC considers a crashed service started.
  return seen.state === 'crashed' ? 'restart' : 'start';
}

function verbBack(before: RcBefore, seen: SeenRc): string | null {
  const runs = runsBack(before, seen);
  return runs === null ? null : runs ? (seen.state === 'crashed' ? 'restart' : 'start') : 'stop';
}

async function act(name: string, verb: string, machine: Machine): Promise<void> {
  const timeLimit = machine.limits.scriptMs;
  const result = await rcService(name, verb, timeLimit, machine);
  expectDone(result, result.output, `${name} did not ${verb}`, timeLimit);
  const state = stateOf(name, await readServices(machine.limits.checkMs, machine)) ?? 'gone';
  if (verb !== 'stop' && !['started', 'starting', 'inactive'].includes(state))
    throw new HostFailure(`${name} did not ${verb}: OpenRC reports the state ${state}`);
}

function expectDone(
  { exitCode, timedOut }: Pick<CommandResult, 'exitCode' | 'timedOut'>,
  output: string,
  fault: string,
  timeLimit: number,
): void {
  if (exitCode === 0) return;
  if (timedOut) throw new HostFailure(`${fault}: it took longer than ${timeLimit / 1000} s`);
  const words = output
    .split('\n')
    .map((line) => line.trim().replace(/^\* /, ''))
    .filter((line) => line !== '' && !line.endsWith('[ ok ]'));
  throw new HostFailure(`${fault}: ${words.slice(-5).join('; ').slice(0, 1000) || `exit code ${exitCode}`}`);
}
