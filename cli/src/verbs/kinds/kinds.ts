import { getKind, listKinds } from '@muster/protocol/http';
import { kindFieldValues } from '../../../../client/src/kind-text.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List the resource kinds that modules may use')
    .addHelpText('after', '\nExample:\n  $ muster kinds list')
    .action(act(list));
  command
    .command('show')
    .description('Show the fields of a kind, and an example')
    .argument('<kind>')
    .addHelpText('after', '\nExample:\n  $ muster kinds show sysctl')
    .action(act(show));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const kinds = await call(listKinds, { all: true });
  if (out.json) return out.data(kinds);
  out.table(
    [
      { heading: 'KIND', text: ({ name }) => name, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'PLATFORMS', text: ({ platforms }) => platforms.join(', ') },
      { heading: 'FIELDS', text: ({ field_count }) => String(field_count), align: 'right', extra: true },
      { heading: 'SUPPORTED', text: ({ executable }) => (executable ? 'yes' : 'not yet'), extra: true },
      { heading: 'SUMMARY', text: ({ summary }) => summary, flexible: true },
    ],
    kinds,
  );
}

async function show(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const kind = await call(getKind, { params: { name } });
  if (out.json) return out.data(kind);
  const { color } = out.style;
  const line = (names: readonly string[]) => names.map(sanitiseLine).join(', ');
  out.print(`${color.bold(sanitiseLine(kind.name))}  ${sanitiseLine(kind.summary)}`);
  out.print(`platforms  ${line(kind.platforms)}`);
  out.print(`identity   ${line(kind.fields.filter(({ identity }) => identity).map((field) => field.name))}`);
  for (const group of kind.exclusive) out.print(`only one   ${line(group)}`);
  if (!kind.executable) out.note('Agents of this release do not apply it yet. Modules that use it are only checked.');
  out.print('');
  out.table(
    [
      {
        heading: 'FIELD',
        text: (field) => field.name,
        paint: (text, { required }) => (required ? color.bold(text) : text),
      },
      { heading: 'REQUIRED', text: ({ required }) => (required ? 'yes' : null) },
      { heading: 'VALUE', text: kindFieldValues, flexible: true },
      { heading: 'DEFAULT', text: (field) => field.default },
      {
        heading: 'DESCRIPTION',
        text: ({ description, sensitive }) => (sensitive ? `${description}; never shown` : description),
        flexible: true,
        wants: 30,
      },
    ],
    kind.fields,
  );
  // Orchestrators before this release send no example.
  if (kind.example === undefined) return;
  out.print('');
  // Indented, because a line of a hostile response could otherwise look like one of this program.
  out.print(sanitise(kind.example).replace(/^/gm, '  '));
}
