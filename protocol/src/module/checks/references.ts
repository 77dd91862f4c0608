import { cannotBe, triggerFor } from '../composition/notifications.ts';
import { isOptional, readingsOf } from '../composition/readings.ts';
import { together } from '../conditions.ts';
import { quoted, suggestion } from '../nearest.ts';
import { cycleText, stableOrder } from '../order.ts';
import type { Outline, OutlineResource, Reference } from '../outline.ts';
import type { Findings } from './findings.ts';

/** Reports references to unknown resources, repeated IDs, and cycles. */
export function checkReferences({ name, resources }: Outline, findings: Findings): void {
  const indexOf = new Map<string, number>();
  for (const [index, { id, path }] of resources.entries()) {
    if (id === undefined) continue;
    const earlier = indexOf.get(id);
    if (earlier === undefined) indexOf.set(id, index);
    else findings.fault([...path, 'id'], `the id ${quoted(id)} is used twice: resource ${earlier + 1} has it too`);
  }
  const ids = [...indexOf.keys()];
  // Limits suggestions, because they would be slow if there are many unknown and many known names.
  let hints = Math.min(100, Math.floor(20_000 / (ids.length + 1)));
  const resolve = ({ id, path }: Reference): number[] => {
    const index = indexOf.get(id) ?? ownIndex(id, name, indexOf);
    if (index !== undefined) return [index];
    // The resource may be in another module of the agent, which is known only at resolution.
    const ofOthers = readingsOf(id).filter(({ module }) => module !== null && module !== name);
    if (ofOthers.length > 0 || isOptional(id)) return [];
    hints -= 1;
    findings.fault(path, `there is no resource with the id ${quoted(id)}${hints < 0 ? '' : suggestion(id, ids)}`);
    return [];
  };
  const dependencies = resources.map(({ dependsOn, candidates }) => [
    ...dependsOn.flatMap(resolve),
    ...candidates.flatMap(({ triggers }) =>
      Object.values(triggers).flatMap((references) => references.flatMap(resolve)),
    ),
  ]);
  for (const [index, { notify }] of resources.entries())
    for (const target of notify.flatMap(resolve)) dependencies[target]?.push(index);
  for (const { candidates } of resources) {
    for (const { triggers } of candidates) {
      const reloading = new Set(triggers.reload_on?.map(({ id }) => id));
      for (const { id, path } of triggers.restart_on ?? []) {
        if (reloading.has(id))
          findings.fault(
            path,
            `${quoted(id)} is also in reload_on: remove it there, because a restart includes a reload`,
          );
      }
    }
  }
  checkCycles(resources, dependencies, findings);
}

/**
 * Returns the index of the resource that a reference such as `vhost?` or `this-module:vhost` refers to; undefined if
 * this module has no such resource.
 */
function ownIndex(id: string, name: string, indexOf: ReadonlyMap<string, number>): number | undefined {
  const own = readingsOf(id).find(
    (reading) => (reading.module === null || reading.module === name) && indexOf.has(reading.id),
  );
  return own === undefined ? undefined : indexOf.get(own.id);
}

/** Refuses a notification if the kind of the resource does not support the trigger. */
export function checkNotifications({ name, resources }: Outline, { fault }: Findings): void {
  const indexOf = new Map(resources.flatMap(({ id }, index) => (id === undefined ? [] : [[id, index] as const])));
  const notImmediately = 'cannot be combined with rerun: let later resources depend on the script instead';
  for (const { notify, candidates } of resources) {
    for (const { triggers } of candidates)
      for (const { immediately, path } of triggers.rerun_on ?? [])
        if (immediately === true) fault([...path, 'immediately'], notImmediately, 'key');
    for (const { trigger, id, path, immediately } of notify) {
      if (immediately === true && trigger === 'rerun_on')
        fault([...path.slice(0, -1), 'immediately'], notImmediately, 'key');
      const candidates = resources[ownIndex(id, name, indexOf) ?? -1]?.candidates ?? [];
      if (candidates.length > 0 && candidates.every(({ type }) => triggerFor(type, trigger) === null))
        fault(path, `${quoted(id)} is a ${candidates[0]?.type}, which ${cannotBe[trigger]}`);
    }
  }
}

function checkCycles(
  resources: readonly OutlineResource[],
  dependencies: readonly number[][],
  { fault, warning }: Findings,
): void {
  const sorted = stableOrder(dependencies);
  if (sorted.ok) return;
  const named = [...sorted.cycle, sorted.cycle[0] as number].map(
    (index) => resources[index]?.id ?? `resource ${index + 1}`,
  );
  const shown = named.length > 12 ? [...named.slice(0, 10), '…', ...named.slice(-1)] : named;
  const first = resources[sorted.cycle[0] as number] as OutlineResource;
  // Variants may refer to each other if no agent gets both of them.
  const members = sorted.cycle.map((index) => resources[index] as OutlineResource);
  const always = members.every(({ universal }) => universal);
  const meet = together(...members.map(({ when }) => when)) !== undefined;
  const byDependsOn = members.every(({ dependsOn }, position) => {
    const next = members[(position + 1) % members.length]?.id;
    return dependsOn.some(({ id }) => id === next);
  });
  if (meet && (always || byDependsOn)) fault(first.path, cycleText(shown));
  else warning(first.path, cycleText(shown, ', if all of them apply to one agent'));
}
