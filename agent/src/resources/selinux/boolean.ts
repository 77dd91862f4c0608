import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { deleteBoolean, recordPath, runningMode, runningValue, setBoolean } from '../../host/selinux.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Machine, nothing, restoring, withChanges } from '../provider/provider.ts';
import { awaiting, canRestore, changeRecords, goneMessage, records, type Unmet, unmetNow } from './records.ts';

export interface SeenBoolean {
  unmet: Unmet;
  /** Null if the kernel has no such boolean. */
  running: boolean | null;
  /** The local value for the next boot; null if there is none, so that the policy's value applies. */
  persistent: boolean | null;
}

/** State before the agent's first change. `running` is null if the agent has not changed it. */
export type BooleanBefore = { running: boolean | null; persistent: boolean | null };

type Declared = ResolvedResource<'selinux-boolean'>;

const isAbsent = ({ body }: Pick<Declared, 'body'>): boolean => body.ensure === 'absent';

/** A boolean of the policy: its running value, and a local value for the next boot. */
export const selinuxBoolean = defineProvider<'selinux-boolean', SeenBoolean, BooleanBefore>({
  type: 'selinux-boolean',
  fields: { name: 'text', value: 'boolean?', ensure: 'text?' },
  // The kernel reports no changes of running values.
  watched: () => [recordPath('booleans')],

  check({ body: { name } }) {
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}$/.test(name))
      throw new HostFailure(`${JSON.stringify(name.slice(0, 100))} is not the name of an SELinux boolean`);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffBoolean,

  async remember(resource, { running, persistent }, _difference, before) {
    // A boolean that is declared absent keeps its running value.
    const now = isAbsent(resource) ? null : running;
    return before === null ? { running: now, persistent } : { ...before, running: before.running ?? now };
  },

  async apply({ body: { name, value, ensure } }, { persistent }, _difference, machine) {
    const next = ensure === 'absent' ? null : value === true;
    await setValues(name, { persistent }, { persistent: next, running: next }, machine);
    return {};
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (_resource, before, seen) => diffBooleanRemoval(before, seen, canRestore()),

  async remove({ body: { name } }, before, { persistent }, _difference, machine) {
    await setValues(name, { persistent }, before, machine);
    return {};
  },
});

async function look({ body: { name } }: Declared, machine: Machine): Promise<SeenBoolean> {
  const { booleans } = await records(machine);
  const running = runningValue(name);
  const unmet =
    unmetNow() ??
    (running === null
      ? `the SELinux policy has no boolean ${name}; check the name, or install the policy that defines it`
      : null);
  return { unmet, running, persistent: booleans.get(name) ?? null };
}

/** @param next if the running value is null, it stays unchanged */
async function setValues(
  name: string,
  now: { persistent: boolean | null },
  next: BooleanBefore,
  machine: Machine,
): Promise<void> {
  const { persistent, running } = next;
  if (persistent !== now.persistent)
    await changeRecords(
      machine,
      () =>
        persistent === null
          ? deleteBoolean(name, machine)
          : setBoolean(name, persistent, { persistent: true }, machine),
      ({ booleans }) => (booleans.get(name) ?? null) === persistent,
      `setsebool recorded ${name} under another name; declare the one in \`semanage boolean -lC\``,
    );
  // While SELinux is off, no boolean has a running value.
  if (running !== null && runningMode() !== 'disabled' && runningValue(name) !== running)
    await setBoolean(name, running, { persistent: false }, machine);
}

const shown = (value: boolean | null): string | null => (value === null ? null : String(value));

export function diffBoolean(resource: Pick<Declared, 'body'>, { unmet, running, persistent }: SeenBoolean): Difference {
  const absent = isAbsent(resource);
  const to = absent ? null : resource.body.value === true;
  const changes: FieldChange[] = [];
  if (to !== null && running !== null && running !== to)
    changes.push({ field: 'value', from: shown(running), to: shown(to) });
  if (persistent !== to) changes.push({ field: 'persistent', from: shown(persistent), to: shown(to) });
  if (changes.length === 0) return nothing();
  return withChanges(absent ? 'remove' : persistent === null ? 'create' : 'update', changes, {
    ...awaiting(unmet),
    message: absent ? 'the running value stays until the next boot' : null,
  });
}

export function diffBooleanRemoval(before: BooleanBefore, seen: SeenBoolean, canChange: boolean): Difference {
  const changes: FieldChange[] = [];
  if (before.running !== null && seen.running !== null && seen.running !== before.running)
    changes.push({ field: 'value', from: shown(seen.running), to: shown(before.running) });
  if (seen.persistent !== before.persistent)
    changes.push({ field: 'persistent', from: shown(seen.persistent), to: shown(before.persistent) });
  return changes.length > 0 && !canChange ? nothing(goneMessage) : restoring(changes);
}
