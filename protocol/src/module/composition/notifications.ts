import { kinds, type ResourceType, type Trigger } from '../kinds.ts';

/**
 * Returns a kind's trigger for a notification. A service that cannot be reloaded is restarted.
 * @returns null if the kind has no such trigger
 */
export function triggerFor(type: ResourceType, trigger: Trigger): Trigger | null {
  const known = kinds[type].triggers;
  if (known.includes(trigger)) return trigger;
  return trigger === 'reload_on' && known.includes('restart_on') ? 'restart_on' : null;
}

/** Completes a sentence about a resource that lacks the trigger. */
export const cannotBe: Readonly<Record<Trigger, string>> = {
  reload_on: 'cannot be reloaded: notify a service',
  restart_on: 'cannot be restarted: notify a service',
  rerun_on: 'cannot be rerun: notify a script',
};
