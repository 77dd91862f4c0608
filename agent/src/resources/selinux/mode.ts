import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  config,
  hasPolicy,
  missingSetenforce,
  runningMode,
  type SelinuxMode,
  setRunningMode,
} from '../../host/selinux.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Difference,
  type Machine,
  restoring,
  typeDrift,
  withChanges,
} from '../provider/provider.ts';
import { insertLines, removeLines, type TextLine } from '../text-edit/lines.ts';
import { editLines, type LinesBefore, type PlacedLine, placedLine, restoredPlaced } from '../text-edit/placed-lines.ts';
import { linesOf, lookAtText, type SeenText } from '../text-edit/text-file.ts';

const settings = { mode: 'SELINUX', policy: 'SELINUXTYPE' } as const;
type Setting = keyof typeof settings;
const settingNames = Object.keys(settings) as Setting[];

export interface SeenMode extends Pick<SeenText, 'type' | 'kind'> {
  running: SelinuxMode;
  /** Values in the file; null if it does not set them. */
  values: Record<Setting, string | null>;
  /** Lines of the file that set them. */
  lines: Record<Setting, PlacedLine[]>;
  /** Whether the policy that is loaded at the next boot is installed. */
  hasPolicy: boolean;
  /** How to install setenforce if it is missing; otherwise null. */
  missing: string | null;
}

/** State before the agent's first change. A field is null if the agent has not changed it. */
export type ModeBefore = Record<Setting, LinesBefore | null> & { running: 'enforcing' | 'permissive' | null };

type Declared = ResolvedResource<'selinux-mode'>;
type Body = Declared['body'];

/** The running mode, and the lines of /etc/selinux/config that set the mode and the policy of the next boot. */
export const selinuxMode = defineProvider<'selinux-mode', SeenMode, ModeBefore>({
  type: 'selinux-mode',
  fields: { mode: 'text', policy: 'text?' },
  watched: () => [config],
  // Booleans, ports, and contexts need SELinux.
  brings: () => ['programs'],

  check({ body: { mode, policy } }) {
    if (!['enforcing', 'permissive', 'disabled'].includes(mode))
      throw new HostFailure('the mode must be enforcing, permissive, or disabled');
    if (policy != null && !/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(policy))
      throw new HostFailure(`${JSON.stringify(policy.slice(0, 100))} is not the name of a policy`);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: ({ body }, seen, circumstances) => diffMode(body, seen, circumstances),

  async remember(_resource, { lines, running }, { changes }, before) {
    const changing = changedFields({ changes });
    const was = (setting: Setting): LinesBefore | null =>
      before?.[setting] ??
      (!changing.has(setting)
        ? null
        : lines[setting].length === 0
          ? { was: 'absent', made: false }
          : { was: 'present', lines: lines[setting] });
    return {
      mode: was('mode'),
      policy: was('policy'),
      running: before?.running ?? (changing.has('running') && running !== 'disabled' ? running : null),
    };
  },

  async apply({ body }, _seen, { changes }, machine) {
    const changing = changedFields({ changes });
    await edit(machine, (lines) =>
      settingNames.reduce(
        (now, setting) => {
          const value = body[setting];
          return changing.has(setting) && value != null ? withSetting(now, setting, value) : now;
        },
        [...lines],
      ),
    );
    if (changing.has('running') && body.mode !== 'disabled') await setRunningMode(body.mode, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const seen = look(resource, machine);
    return { ...seen, hasPolicy: hasPolicy(bootSettings(before, seen).policy) };
  },
  diffRemoval: (_resource, before, seen) => diffModeRemoval(before, seen),

  async remove(_resource, before, _seen, { changes }, machine) {
    const changing = changedFields({ changes });
    await edit(machine, (lines) =>
      settingNames.reduce(
        (now, setting) => {
          const record = before[setting];
          return record !== null && changing.has(setting) ? restoredPlaced(own(now, setting), record, now) : now;
        },
        [...lines],
      ),
    );
    if (changing.has('running') && before.running !== null) await setRunningMode(before.running, machine);
    return {};
  },
});

/**
 * Returns the value that a line sets, or null for another line. A line that libselinux ignores, because of its spaces or
 * the case of its name, has itself as its value, so that the agent replaces it.
 */
export function valueIn(text: string, setting: Setting): string | null {
  const name = settings[setting];
  const [, left, value = ''] = new RegExp(`^([ \\t]*${name}[ \\t]*=[ \\t]*)(.*?)[ \\t]*$`, 'i').exec(text) ?? [];
  return left === undefined ? null : left === `${name}=` ? value : text.trimEnd();
}

const modes = /^(enforcing|permissive|disabled)/i;

/** Returns the settings for the next boot that result from restoring the original lines. */
function bootSettings(before: ModeBefore, { lines }: Pick<SeenMode, 'lines'>): { mode: string | null; policy: string } {
  const values = (setting: Setting): string[] => {
    const record = before[setting];
    const after = record === null ? lines[setting] : record.was === 'absent' ? [] : record.lines;
    return after.map(({ text }) => valueIn(text, setting) ?? '');
  };
  // libselinux uses the first valid mode, but the last policy.
  const mode = values('mode').find((value) => modes.test(value));
  return { mode: modes.exec(mode ?? '')?.[0].toLowerCase() ?? null, policy: values('policy').at(-1) || 'targeted' };
}

/** Returns the positions of the lines that set a value. */
const own = (lines: readonly TextLine[], setting: Setting): number[] =>
  lines.flatMap(({ text }, index) => (valueIn(text, setting) === null ? [] : [index]));

export function withSetting(lines: readonly TextLine[], setting: Setting, value: string): TextLine[] {
  const text = `${settings[setting]}=${value}`;
  const [first, ...others] = own(lines, setting);
  if (first === undefined) return insertLines(lines, lines.length, [text]);
  return removeLines(
    lines.map((line, index) => (index === first ? { ...line, text } : line)),
    new Set(others),
  );
}

const edit = (machine: Machine, change: (lines: readonly TextLine[]) => TextLine[]): Promise<void> =>
  editLines(config, machine, change, { missingDirectory: 'there is no directory /etc/selinux' });

function look(resource: Declared, machine: Machine): SeenMode {
  const { content, ...seen } = lookAtText(
    { ...resource, body: { path: config } } as unknown as ResolvedResource,
    machine,
  );
  const lines = linesOf({ ...seen, content });
  const found = (setting: Setting): PlacedLine[] => own(lines, setting).map((index) => placedLine(lines, index));
  const placed = { mode: found('mode'), policy: found('policy') };
  const value = (setting: Setting): string | null => {
    // Several lines never equal a declared value, so the agent replaces them with a single line.
    const values = placed[setting].map(({ text }) => valueIn(text, setting) ?? '');
    return values.length === 0 ? null : values.length === 1 ? (values[0] as string) : values.join(', ');
  };
  const values = { mode: value('mode'), policy: value('policy') };
  return {
    type: seen.type,
    kind: seen.kind,
    running: runningMode(),
    values,
    lines: placed,
    hasPolicy: hasPolicy(resource.body.policy ?? values.policy ?? 'targeted'),
    missing: missingSetenforce(),
  };
}

export function diffMode(body: Body, seen: SeenMode, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const { type, kind, running, values } = seen;
  if (type !== 'file' && type !== 'absent') {
    if (purpose === 'drift') return typeDrift({ type, ...(kind === null ? {} : { kind }) }, 'file');
    throw new HostFailure(`${config} is ${kind}, not a file; it is not changed`);
  }
  const changes: FieldChange[] = [];
  // The names of modes are case-insensitive.
  if (values.mode?.toLowerCase() !== body.mode) changes.push({ field: 'mode', from: values.mode, to: body.mode });
  if (body.policy != null && values.policy !== body.policy)
    changes.push({ field: 'policy', from: values.policy, to: body.policy });
  const setsRunning = running !== 'disabled' && body.mode !== 'disabled' && running !== body.mode;
  if (setsRunning) changes.push({ field: 'running', from: running, to: body.mode });
  const message = untilBoot(body.mode, running, changes);
  const missing = unmet(body, seen) ?? (setsRunning ? seen.missing : null);
  const awaits = [missing === null ? null : { kind: 'programs' as const, message: missing }];
  return withChanges('update', changes, { awaits, message });
}

/**
 * Returns why the mode cannot be declared; null if it can. In mode enforcing, a kernel without a policy does not boot.
 */
function unmet({ mode, policy }: Body, { type, hasPolicy, values }: SeenMode): string | null {
  if (type === 'absent') return `there is no file ${config}; install an SELinux policy, such as selinux-policy-default`;
  if (mode === 'disabled' || hasPolicy) return null;
  return `there is no policy ${policy ?? values.policy ?? 'targeted'} in /etc/selinux; install it, or the machine might not boot`;
}

function untilBoot(mode: string, running: SelinuxMode, changes: readonly FieldChange[]): string | undefined {
  if (mode === 'disabled') return running === 'disabled' ? undefined : `SELinux stays ${running} until the next boot`;
  if (running === 'disabled')
    return 'SELinux is off until the next boot, which must also label all files (/.autorelabel); Debian needs selinux-activate first';
  return changes.some(({ field }) => field === 'policy')
    ? 'the policy is loaded at the next boot, which must also label all files (/.autorelabel)'
    : undefined;
}

export function diffModeRemoval(before: ModeBefore, seen: SeenMode): Difference {
  const { running, lines, values } = seen;
  const changes: FieldChange[] = [];
  const kept = whyKept(before, seen);
  for (const setting of kept === null ? settingNames : []) {
    const record = before[setting];
    if (record === null) continue;
    const earlier = record.was === 'absent' ? [] : record.lines.map(({ text }) => text);
    const now = lines[setting].map(({ text }) => text);
    if (earlier.join('\n') !== now.join('\n'))
      changes.push({
        field: setting,
        from: values[setting],
        to: earlier.map((text) => valueIn(text, setting) ?? '').join(', ') || null,
      });
  }
  if (before.running !== null && running !== 'disabled' && running !== before.running)
    changes.push({ field: 'running', from: running, to: before.running });
  return restoring(changes, kept);
}

/** Returns why the settings for the next boot cannot be restored, or null if they can. */
function whyKept(before: ModeBefore, seen: SeenMode): string | null {
  if (before.mode === null && before.policy === null) return null;
  if (seen.type === 'absent') return `${config} was deleted, so its settings are not restored`;
  const { mode, policy } = bootSettings(before, seen);
  if (mode === null || mode === 'disabled' || seen.hasPolicy) return null;
  return `the settings of the next boot stay, because there is no policy ${policy} in /etc/selinux, and the machine might not boot in the mode ${mode}`;
}
