import { eventTypes, notifyingEvents } from '@muster/protocol/http';

/** Generates the page that lists every event type of the audit log, from the event type table in the code. */

const code = (text: string): string => `\`${text}\``;

/**
 * Returns the page.
 * @throws Error if no source file writes an event type in the table
 */
export function eventsPage(sources: readonly string[]): string {
  const types = Object.keys(eventTypes);
  const unused = types.filter((type) => !sources.some((source) => source.includes(`'${type}'`)));
  if (unused.length > 0)
    throw new Error(`no code writes events of type ${unused.join(', ')}; delete the type from event-types.ts`);
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
    'Every event type in the audit log: its severity (the usual one first), when it is written, the type of its',
    '`target`, the fields of its `metadata`, and whether operators are notified. `GET /api/v1/audit?event_type=TYPE`',
    'lists the events of one type, `?category=` those with the same word before the dot. `GET /api/v1/events` streams them live.',
    'Later versions may add types. `node tools/checks/docs.ts --write` generates this page.',
    '',
    '| type | severity | when | target | metadata | notified |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
    '## Refusals',
    '',
    '`auth.refused`, `auth.forbidden`, `auth.plaintext_refused` and `agent.refused` are written at the first refusal, and then',
    'once an hour while refusals continue, with their number since then (`count`, `since`). Refusals count together if these are equal:',
    '',
    '- the sender’s authenticated or claimed identity (an operator or agent); none for unknown keys,',
    '- the network that it came from (an IPv4 address, or the first 64 bits of an IPv6 one),',
    '- the reason (`code`) and the route.',
    '',
    'In an hour, at most 50 different refusals of unknown senders get their own events, 20 that name the same operator, 60 of a',
    'signed-in operator, 50 of unknown agents, and 200 of known agents. Further refusals are counted together, in an event that says so and has no `ip`.',
    'So an attacker with many addresses and many keys fills neither the log nor the memory. If the process is killed, counts that are not yet',
    'recorded are lost. Requests without a live sign-in session (401) are only in the log of the process.',
    '',
  ].join('\n');
}
