import { kinds, type ResourceType, type Trigger } from '../kinds.ts';

/**
 * Returns the trigger of a kind for a notification. A service that cannot be reloaded is restarted.
 * @returns null if the kind has none
 */
export function triggerFor(type: ResourceType, trigger: Trigger): Trigger | null {
  const known = kinds[type].triggers;
  if (known.includes(trigger)) return trigger;
  return trigger === 'reload_on' && known.includes('restart_on') ? 'restart_on' : null;
}

/** Completes a sentence about a resource that has no such trigger. */
export const cannotBe: Readonly<Record<Trigger, string>> = {
  reload_on: 'cannot be reloaded: notify a service',
  restart_on: 'cannot be restarted: notify a service',
  rerun_on: 'cannot be rerun: notify a script',
};
