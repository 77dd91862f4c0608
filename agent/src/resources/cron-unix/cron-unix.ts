import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import { exists } from '../../host/read-system.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf, writtenPart } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Json, nothing } from '../provider/provider.ts';
import { escapeCommand, longestCommand, parseCrontab, renderJob, scheduleFault } from './crontab.ts';

/** Manages a cron job as one file in /etc/cron.d. */

type Body = ResourceBodies['cron-unix'];
type Declared = ResolvedResource<'cron-unix'>;

export interface SeenJob {
  file: SeenFile;
  /** The fields of the job in the file, or null if the file has no job. */
  job: { schedule: string; user: string; command: string } | null;
  /** Whether the user is missing, so that cron would ignore the file. */
  userIsMissing: boolean;
  /** Whether no known cron implementation is installed. */
  cronIsMissing: boolean;
}

const daemons = ['/usr/sbin/cron', '/usr/sbin/crond', '/usr/sbin/fcron', '/usr/lib/systemd/system/cron.target'];

/** Returns a path that is unique for each job, because the encoded user contains no "-". */
function jobPath({ user, name }: Pick<Body, 'user' | 'name'>): string {
  const escaped = user.replaceAll(/[^A-Za-z0-9]/g, (char) => `_${char.charCodeAt(0).toString(16)}`);
  return `/etc/cron.d/muster-${escaped}-${name}`;
}

function fileOf(resource: Declared) {
  const body = resource.body;
  return writtenPart(resource, {
    path: jobPath(body),
    text: body.ensure === 'absent' ? null : renderJob(body),
    mode: resource.sensitive_fields.length > 0 ? '0600' : '0644',
  });
}

function seenJob(resource: Declared, file: SeenFile): Omit<SeenJob, 'userIsMissing'> {
  const text = textOf(file);
  return {
    file,
    job: text === null ? null : parseCrontab(text).job,
    cronIsMissing: resource.body.ensure !== 'absent' && !daemons.some((path) => exists(path)),
  };
}

const jobFields = ['schedule', 'user', 'command'] as const;
const ownershipFields = new Set(['owner', 'group', 'mode', 'symlink', 'type']);

/** Translates changes to the file into changes to the job's fields. */
function fieldChanges(file: FieldChange[], from: SeenJob['job'], to: SeenJob['job']): FieldChange[] {
  const ensure = file.filter(({ field }) => field === 'ensure');
  const creation = ensure.some((change) => change.from === 'absent');
  const rest = creation ? [] : file.filter(({ field }) => ownershipFields.has(field));
  if (ensure.some((change) => change.to === 'absent')) return ensure;
  const fields = jobFields.flatMap((field): FieldChange[] =>
    from?.[field] === to?.[field] ? [] : [{ field, from: from?.[field] ?? null, to: to?.[field] ?? null }],
  );
  const contentChanges = creation || file.some(({ field }) => field === 'content');
  // Whether anything other than the job changed: comments, settings, or a second job.
  const others = contentChanges && fields.length === 0;
  return [
    ...ensure,
    ...(contentChanges ? fields : []),
    ...(others ? [{ field: 'cron_file', from: 'changed by hand', to: 'as declared' }] : []),
    ...rest,
  ];
}

const asFields = (difference: Difference, changes: FieldChange[]): Difference => ({
  ...difference,
  changes,
  diff: null,
});

export const cronUnix = defineProvider<'cron-unix', SeenJob, FileBefore>({
  type: 'cron-unix',
  fields: { name: 'text', user: 'text', schedule: 'text', command: 'text', ensure: 'text?' },
  path: (resource) => jobPath(resource.body),

  check(resource) {
    const { command, schedule } = resource.body;
    const fault = scheduleFault(schedule);
    if (fault !== null) throw new HostFailure(`its schedule is invalid: ${fault}`);
    if (command.trim() === '') throw new HostFailure('its command is empty');
    if (Buffer.byteLength(escapeCommand(command)) > longestCommand)
      throw new HostFailure(
        `its command is longer than the ${longestCommand} bytes that cron reads; move it into a script, and run the script`,
      );
  },

  observe(resource, _circumstances, machine) {
    const file = fileOf(resource).look(machine);
    const { user, ensure } = resource.body;
    const userIsMissing = ensure !== 'absent' && !/^\d+$/.test(user) && machine.accounts.uid(user) === null;
    return { ...seenJob(resource, file), userIsMissing };
  },

  diff(resource, seen, circumstances) {
    const body = resource.body;
    const file = fileOf(resource).diff(seen.file, circumstances);
    if (file.action === 'none') return file;
    const { user } = body;
    return {
      ...asFields(file, fieldChanges(file.changes, seen.job, parseCrontab(renderJob(body)).job)),
      ...(seen.userIsMissing
        ? { awaits: [{ kind: 'accounts', message: `there is no user ${user}, so cron would ignore the job` }] }
        : {}),
      ...(seen.cronIsMissing
        ? { message: 'no cron is installed on this machine, so the job does not run; install one' }
        : {}),
    };
  },

  inBrief: (seen): Json => JSON.parse(JSON.stringify({ ...seen, file: fileInBrief(seen.file) })),
  weight: (seen) => fileWeight(seen.file),

  remember: (resource, seen, _difference, before, machine) => fileOf(resource).record(seen.file, before, machine),

  async apply(resource, seen, _difference, machine) {
    await fileOf(resource).write(seen.file, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const file = await fileOf(resource).lookForRemoval(before, machine);
    return { ...seenJob(resource, file), userIsMissing: false, cronIsMissing: false };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const file = fileOf(resource).diffRemoval(before, seen.file, copies);
    if (file.action === 'none') return nothing(file.message);
    const bytes =
      before.was === 'file' && before.content !== null ? copies.read(before.content, maxContentInMemory) : null;
    const back = bytes === null ? null : parseCrontab(bytes.toString('utf8')).job;
    return asFields(file, fieldChanges(file.changes, seen.job, back));
  },

  async remove(resource, before, seen, _difference, machine) {
    await fileOf(resource).restore(before, seen.file, machine);
    return {};
  },
});
