import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  type Circumstances,
  type Difference,
  nothing,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';

/** Decides how to change an OpenRC service. Does not access the machine. */

export interface SeenRc {
  /** OpenRC's state, such as started, stopped, or crashed. Null if the service does not exist. */
  state: string | null;
  /** Run levels that contain the service. */
  levels: string[];
  levelExists: boolean;
  /** A value that changes with every start; null while the service is not started. */
  startedAt: string | null;
}

export type RcBefore = {
  /** Changed run levels, and whether each originally contained the service. */
  levels: { [level: string]: boolean };
  /** Whether the service was running before the agent first started or stopped it. */
  running: boolean | null;
};

type Body = ResourceBodies['service-openrc'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
export const levelOf = ({ runlevel }: Body): string => runlevel ?? 'default';

/** Reports whether the service is running or starting. An `inactive` service is waiting, for example for a network. */
export const isUp = ({ state }: SeenRc): boolean => state === 'started' || state === 'starting' || state === 'inactive';
/** Reports whether the service can be stopped. */
export const isLive = (seen: SeenRc): boolean => isUp(seen) || seen.state === 'crashed';

/** Run levels to remove the service from and to add it to. */
export interface Moves {
  leave: string[];
  enter: string[];
}

/** @param succeeded the earlier declaration; if it has another run level, the service is removed from that level */
function movesOf(resource: ResolvedResource, seen: SeenRc, succeeded: ResolvedResource | null): Moves {
  const body = bodyOf(resource);
  if (body.ensure === 'absent') return { leave: [...seen.levels], enter: [] };
  if (body.enabled == null) return { leave: [], enter: [] };
  const level = levelOf(body);
  if (!body.enabled) return { leave: seen.levels.filter((one) => one === level), enter: [] };
  const was = succeeded === null || bodyOf(succeeded).enabled !== true ? null : levelOf(bodyOf(succeeded));
  return {
    leave: seen.levels.filter((one) => one === was && one !== level),
    enter: seen.levels.includes(level) ? [] : [level],
  };
}

export function diffRc(
  resource: ResolvedResource,
  seen: SeenRc,
  circumstances: Pick<Circumstances, 'purpose' | 'restartBy' | 'succeeded'>,
): Difference {
  const body = bodyOf(resource);
  const moves = movesOf(resource, seen, circumstances.succeeded);
  if (body.ensure === 'absent') {
    return moves.leave.length === 0 && !isLive(seen) ? nothing() : presenceDrift();
  }
  const drift = circumstances.purpose === 'drift';
  if (body.enabled === true && !seen.levelExists && !drift)
    throw new HostFailure(`there is no run level ${levelOf(body)}: /etc/runlevels/${levelOf(body)} does not exist`);
  const missing = seen.state === null;
  const changes: FieldChange[] = [];
  if (moves.leave.length > 0 && moves.enter.length > 0)
    changes.push({ field: 'runlevel', from: moves.leave.join(' '), to: levelOf(body) });
  else if (moves.leave.length + moves.enter.length > 0)
    changes.push({ field: 'enabled', from: missing ? null : String(body.enabled === false), to: String(body.enabled) });
  const wrong = body.running === true ? !isUp(seen) : body.running === false && isLive(seen);
  if (wrong) changes.push({ field: 'running', from: missing ? null : String(isUp(seen)), to: String(body.running) });
  if (missing) {
    const all = changes.length > 0 ? changes : [{ field: 'ensure', from: 'absent', to: 'present' }];
    const message = `there is no service ${body.name} in /etc/init.d`;
    return withChanges('update', all, { awaits: [drift ? null : { kind: 'units', message }] });
  }
  const restarts = isUp(seen) && body.running !== false && circumstances.restartBy.length > 0;
  if (changes.length === 0 && !restarts) return nothing();
  return {
    action: restarts ? 'restart' : 'update',
    changes,
    diff: null,
    ...(wrong && seen.state === 'crashed' ? { message: 'it had crashed' } : {}),
  };
}

export function diffRcRemoval(resource: ResolvedResource, before: RcBefore, seen: SeenRc): Difference {
  if (seen.state === null && seen.levels.length === 0) return nothing('already removed');
  const { enter, leave } = movesBack(before, seen);
  const changes: FieldChange[] = [];
  const level = levelOf(bodyOf(resource));
  if (enter.length > 0 && leave.length > 0)
    changes.push({ field: 'runlevel', from: leave.join(' '), to: enter.join(' ') });
  else if (enter.length + leave.length > 0)
    changes.push({ field: 'enabled', from: String(leave.length > 0), to: String(enter.length > 0) });
  if (runsBack(before, seen) !== null)
    changes.push({ field: 'running', from: String(isUp(seen)), to: String(before.running) });
  return changes.length === 0 ? nothing(`already in its original state, in run level ${level}`) : restoring(changes);
}

export function movesBack({ levels }: RcBefore, seen: SeenRc): Moves {
  const touched = Object.entries(levels);
  return {
    leave: touched.flatMap(([level, was]) => (!was && seen.levels.includes(level) ? [level] : [])),
    // The service's package was removed, so the service cannot be started.
    enter:
      seen.state === null
        ? []
        : touched.flatMap(([level, was]) => (was && !seen.levels.includes(level) ? [level] : [])),
  };
}

/** Returns the running state to restore, or null if it needs no change. */
export const runsBack = ({ running }: RcBefore, seen: SeenRc): boolean | null =>
  running === null || seen.state === null || running === (running ? isUp(seen) : isLive(seen)) ? null : running;
