import { eventTypes, notifyingEvents } from '@muster/protocol/http';

/** The page of docs that tells every type of event in the audit log, made from the table that the code writes them by. */

const code = (text: string): string => `\`${text}\``;

/** @throws Error when a type is in the table that no source writes */
export function eventsPage(sources: readonly string[]): string {
  const types = Object.keys(eventTypes);
  const unused = types.filter((type) => !sources.some((source) => source.includes(`'${type}'`)));
  if (unused.length > 0) throw new Error(`no code writes events of the type ${unused.join(', ')}`);
  const notifying: ReadonlySet<string> = new Set(notifyingEvents);
  const rows = Object.entries(eventTypes)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([type, { severity, when, target, metadata }]) =>
      [
        '',
        ` ${code(type)} `,
        ` ${severity.join(', ')} `,
        ` ${when} `,
        target === '' ? ' ' : ` ${code(target)} `,
        metadata.length === 0 ? ' ' : ` ${metadata.map(code).join(', ')} `,
        notifying.has(type) ? ' yes ' : ' ',
        '',
      ].join('|'),
    );
  return [
    '# Audit events',
    '',
    'Every type of event that the audit log can have: how severe it is (the usual first), when it is written, what its',
    '`target` is, what its `metadata` may have, and whether operators are notified of it. `GET /api/v1/audit?event_type=TYPE`',
    'lists those of one type, `?category=` those of all types before the dot; `GET /api/v1/events` tells them as they happen.',
    'Later versions may write further types. This page is made by `node tools/checks/docs.ts --write`.',
    '',
    '| type | severity | when | target | metadata | notified |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
    '## Refusals',
    '',
    '`auth.refused`, `auth.forbidden`, `auth.plaintext_refused` and `agent.refused` are written when it happens first, and then',
    'once an hour for as long as it goes on, with the number of refusals since (`count`, `since`). What is the same:',
    '',
    '- the operator, or the agent, that the refused one is or says it is; nobody, for keys that are not known,',
    '- the network it came from (an IPv4 address, or the first 64 bits of an IPv6 one),',
    '- why (`code`), and on which route.',
    '',
    'In an hour no more than 50 different ones of strangers are told one by one, 20 that name the same operator, 60 of an operator',
    'who is signed in, 50 of unknown agents and 200 of known ones. The others are counted together, in an event that says so and has no `ip`: whoever tries',
    'from many addresses with many keys fills neither the log nor the memory. Counts that were not yet told when the process',
    'is killed are lost. Requests without a live session (401) are in the process’s own log only.',
    '',
  ].join('\n');
}
