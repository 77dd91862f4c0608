import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { type Context, portKey, recordPath, setRecord } from '../../host/selinux.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { diffRecord, diffRecordRemoval, type RecordBefore, type SeenRecord } from './context-diff.ts';
import { canRestore, changeRecords, hasFields, records, unmetNow } from './records.ts';

type Declared = ResolvedResource<'selinux-port'>;
type Body = Declared['body'];

/** The local record of the SELinux context of a port or port range. */
export const selinuxPort = defineProvider<'selinux-port', SeenRecord, RecordBefore>({
  type: 'selinux-port',
  fields: { port: 'text', protocol: 'text', type: 'text?', range: 'text?', ensure: 'text?' },
  watched: () => [recordPath('ports')],

  check({ body: { port, protocol, type, range } }) {
    if (!/^[0-9]{1,5}(-[0-9]{1,5})?$/.test(port) || !/^[a-z]{3,4}$/.test(protocol))
      throw new HostFailure('the port or its protocol is not valid');
    expectWords(type, range);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: ({ body }, seen) => diffRecord(declaredRecord(body), seen),
  remember: async (_resource, { record }, _difference, before) => before ?? { record },
  apply: ({ body }, { record }, _difference, machine) => change(body, record, declaredRecord(body), machine),

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (_resource, before, seen) => diffRecordRemoval(before, seen, canRestore()),
  remove: ({ body }, before, { record }, _difference, machine) => change(body, record, before.record, machine),
});

/** Refuses words that a program could interpret as an option, or that have spaces. */
export function expectWords(...words: readonly (string | null | undefined)[]): void {
  for (const word of words)
    if (word != null && !/^[\w<][\w.:,<>-]{0,999}$/.test(word))
      throw new HostFailure(
        `${JSON.stringify(word.slice(0, 100))} is not a valid user, type, or range of an SELinux context`,
      );
}

const declaredRecord = ({ ensure, type, range }: Body): Partial<Context> | null =>
  ensure === 'absent' ? null : { ...(type == null ? {} : { type }), ...(range == null ? {} : { range }) };

const keyOf = ({ protocol, port }: Body): string => `${protocol}/${port}`;

async function look({ body }: Declared, machine: Machine): Promise<SeenRecord> {
  const { ports } = await records(machine);
  return { unmet: unmetNow(), record: ports.get(keyOf(body)) ?? null };
}

function change(body: Body, now: Context | null, next: Partial<Context> | null, machine: Machine): Promise<Outcome> {
  const object = { object: 'port', key: portKey(body.protocol, body.port), what: `the port ${keyOf(body)}` } as const;
  const isDone = (record: Context | null): boolean => (next === null ? record === null : hasFields(record, next));
  return changeRecords(
    machine,
    () => setRecord(object, now, next, machine),
    ({ ports }) => isDone(ports.get(keyOf(body)) ?? null),
    `semanage recorded the port ${keyOf(body)} differently; if ${body.type} is an alias, declare the type itself, as in \`semanage port -lC\``,
  );
}
