import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  type Context,
  contextKey,
  patternKey,
  printedPath,
  recordPath,
  restoreLabels,
  setRecord,
  wrongLabels,
} from '../../host/selinux.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Database, Machine, Outcome } from '../provider/provider.ts';
import { diffRecord, diffRecordRemoval, type RecordBefore, recordChanges, type SeenRecord } from './context-diff.ts';
import { LabelCounts } from './label-counts.ts';
import { expectWords } from './port.ts';
import { canRestore, changeRecords, hasFields, records, unmetNow } from './records.ts';

export interface SeenContext extends SeenRecord {
  /** Number of files in `restore` whose label differs from the policy, and the path of one such file. */
  labels: { wrong: number; example: string } | null;
}

type Declared = ResolvedResource<'selinux-context'>;
type Body = Declared['body'];

const maxRestored = 20;

/** The local record of the context of files, and the labels of the files below some paths. */
export const selinuxContext = defineProvider<'selinux-context', SeenContext, RecordBefore>({
  type: 'selinux-context',
  fields: {
    target: 'text',
    file_type: 'text?',
    type: 'text?',
    user: 'text?',
    range: 'text?',
    restore: 'list?',
    ensure: 'text?',
  },
  watched: () => [recordPath('file_contexts')],

  check({ body: { target, type, user, range, restore } }) {
    if (!/^\/[^\s\x00-\x1f\x7f]*$/.test(target))
      throw new HostFailure('the target must be a regular expression for absolute paths without spaces');
    expectWords(type, user, range);
    const paths = restore ?? [];
    if (paths.length > maxRestored) throw new HostFailure(`\`restore\` has more than ${maxRestored} paths`);
    if (paths.some((path) => !/^\/[^\n\r\0]+$/.test(path) || /^\/(proc|sys|dev)(\/|$)/.test(path)))
      throw new HostFailure('`restore` must have absolute paths, but not / and none in /proc, /sys, or /dev');
    // restorecon takes its arguments for patterns.
    if (paths.some((path) => /[*?[\]{}~\\]|\/\/|\/\.{1,2}(\/|$)/.test(path)))
      throw new HostFailure('`restore` must have paths without * ? [ ] { } ~ \\ and without //, /./, and /../');
    if (type === '<<none>>' && (user != null || range != null))
      throw new HostFailure('files with the type <<none>> have no label, so remove `user` and `range`');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),

  diff({ body }, seen) {
    const declared = declaredRecord(body);
    const difference = diffRecord(declared, seen, labelChanges(seen));
    const relabels = recordChanges(declared, seen.record).length > 0 && (body.restore ?? []).length > 0;
    return relabels ? { ...difference, message: `relabels ${body.restore?.join(', ')}` } : difference;
  },

  remember: async (_resource, { record }, _difference, before) => before ?? { record },
  apply: ({ body }, { record }, _difference, machine) => change(body, record, declaredRecord(body), machine),

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (_resource, before, seen) => diffRecordRemoval(before, seen, canRestore(), labelChanges(seen)),
  remove: ({ body }, before, { record }, _difference, machine) => change(body, record, before.record, machine),
});

const declaredRecord = ({ ensure, type, user, range }: Body): Partial<Context> | null =>
  ensure === 'absent'
    ? null
    : {
        ...(type == null ? {} : { type }),
        ...(user == null ? {} : { user }),
        ...(range == null ? {} : { range }),
      };

/** Returns the change of wrong labels. They also show whether an agent that was killed had relabeled the files. */
const labelChanges = ({ labels }: SeenContext): FieldChange[] =>
  labels === null
    ? []
    : [{ field: 'labels', from: `${labels.wrong} differ, such as ${labels.example}`, to: 'as in the policy' }];

type Labels = NonNullable<SeenContext['labels']> | null;

/**
 * The wrong labels below the paths of all resources, because each start of restorecon takes a tenth of a second; null if
 * that fails, perhaps because of the files of one resource.
 */
const labels: Database<LabelCounts | null> = {
  name: 'SELinux labels',
  async read(machine) {
    const bodies = machine.resourcesOf('selinux-context').map(({ body }) => body as Body);
    try {
      return await countLabels(bodies, machine);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      return null;
    }
  },
};

async function labelsOf(body: Body, machine: Machine): Promise<Labels> {
  const counts = (await machine.database(labels)) ?? (await countLabels([body], machine));
  return counts.of(body);
}

async function countLabels(bodies: readonly Body[], machine: Machine): Promise<LabelCounts> {
  const counts = new LabelCounts();
  for (const body of bodies) counts.watch(body, restored(body).map(printedPath));
  await wrongLabels(bodies.flatMap(restored), machine, (label) => counts.add(label));
  return counts;
}

const restored = ({ restore }: Body): string[] =>
  (Array.isArray(restore) ? restore : []).slice(0, maxRestored).map((path) => path.replace(/\/+$/, ''));

async function look({ body }: Declared, machine: Machine): Promise<SeenContext> {
  const { contexts } = await records(machine);
  const unmet = unmetNow();
  return {
    unmet,
    record: contexts.get(contextKey(body.file_type ?? 'any', body.target)) ?? null,
    labels: unmet === null && restored(body).length > 0 ? await labelsOf(body, machine) : null,
  };
}

async function change(
  body: Body,
  now: Context | null,
  next: Partial<Context> | null,
  machine: Machine,
): Promise<Outcome> {
  const { target, file_type } = body;
  const key = contextKey(file_type ?? 'any', target);
  const isDone = (record: Context | null): boolean => (next === null ? record === null : hasFields(record, next));
  if (!isDone(now))
    await changeRecords(
      machine,
      () =>
        setRecord(
          { object: 'fcontext', key: patternKey(file_type ?? 'any', target), what: `files ${target}` },
          now,
          next,
          machine,
        ),
      ({ contexts }) => isDone(contexts.get(key) ?? null),
      `semanage recorded the context of ${target} differently; if ${body.type} is an alias, declare the type itself, as in \`semanage fcontext -lC\``,
    );
  machine.stale(labels);
  await restoreLabels(restored(body), machine);
  return {};
}
